#include "sandbox/sandbox.h"

#include <seccomp.h>

#include <cstdlib>

#include "sandbox/protections.h"

namespace ks::sandbox {

Confined confine(const Confinement& confinement) {
  Confined result;
  Json& report = result.protections;
  // Namespaces and file rules first: the filter forbids making them.
  report["no_network"] = leave_network(confinement);
  report["no_new_privileges"] = set_no_new_privileges();
  report["file_rules"] = restrict_files(confinement);
  report["limits"] = limit_resources(confinement);
  report["no_capabilities"] = drop_capabilities();
  report["unreadable_by_others"] = set_undumpable();
  report["call_filter"] = filter_calls(confinement, result.witness_fd);
  return result;
}

Json seal(const Confinement& confinement) {
  Json report = Json::object();
  report["no_files"] = close_filter(confinement);
  if (report["no_files"] == true && (confinement.interpreter || confinement.device_files))
    report["no_files"] = "this kind of worker reads files while it works; it can write none";
  return report;
}

std::string call_name(int number) {
  char* name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  std::string result = name != nullptr ? name : fmt::format("call {}", number);
  std::free(name);
  return result;
}

}  // namespace ks::sandbox
