#include "worker/native_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace ks::worker {
namespace {

constexpr size_t kMaxHashBytes = 128;

void* required_symbol(void* handle, const char* name, const char* mend) {
  void* symbol = ::dlsym(handle, name);
  if (symbol == nullptr) throw Error("the candidate does not export {}; {}", name, mend);
  return symbol;
}

constexpr const char* kDefine = "define it as the operator's header declares it (extern \"C\", KS_EXPORT)";
constexpr const char* kInclude = "include the operator's header from abi/ in one of its sources";

}  // namespace

NativeLibrary load_library(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Error("the candidate cannot be loaded: {}", ::dlerror());
  NativeLibrary library;
  const auto* version = static_cast<const uint32_t*>(required_symbol(handle, "ks_abi_version", kInclude));
  const auto* hash = static_cast<const char*>(required_symbol(handle, "ks_source_hash", kInclude));
  library.abi_version = *version;
  if (library.abi_version != KS_ABI_VERSION)
    throw Error("the candidate was built for version {} of the ABI, this is version {}; build it against this abi/",
                library.abi_version, KS_ABI_VERSION);
  library.source_hash.assign(hash, ::strnlen(hash, kMaxHashBytes));
  library.sizes = reinterpret_cast<decltype(library.sizes)>(required_symbol(handle, "ks_sizes", kDefine));
  library.plan = reinterpret_cast<decltype(library.plan)>(required_symbol(handle, "ks_plan", kDefine));
  library.run = reinterpret_cast<CallFunction>(required_symbol(handle, "ks_run", kDefine));
  library.plan_lengths = reinterpret_cast<CallFunction>(::dlsym(handle, "ks_plan_lengths"));
  return library;
}

}  // namespace ks::worker
