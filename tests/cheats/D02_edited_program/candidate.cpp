// kernelseek: operator=rmsnorm
// A constructor, which runs while the binary is loaded, before a worker that seals too late has sealed itself.
#include <cstdio>

#include "../rmsnorm_parts.h"

namespace {
const bool edited = [] {
  std::FILE* file = std::fopen("/tmp/kernelseek-cheat-early.txt", "w");
  if (file == nullptr) return false;
  std::fputs("edited\n", file);
  std::fclose(file);
  return true;
}();
}  // namespace

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  normalise(call);
  return edited ? KS_OK : KS_OK;
}
