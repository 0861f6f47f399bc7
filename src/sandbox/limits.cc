// Limits, privileges and namespaces: everything but files and system calls.
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sandbox/protections.h"

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

namespace ks::sandbox {
namespace {

constexpr rlim_t kMaxOpenFiles = 256;

std::string why() {
  return std::strerror(errno);
}

bool lower_limit(int resource, rlim_t value) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return false;
  const rlim_t lower = limit.rlim_max == RLIM_INFINITY ? value : std::min(value, limit.rlim_max);
  const rlimit wanted{lower, lower};
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &wanted) == 0;
}

}  // namespace

Json set_no_new_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "prctl refused: " + why();
  return true;
}

Json set_undumpable() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return "prctl refused: " + why();
  return true;
}

Json limit_resources(const Confinement& confinement) {
  if (!lower_limit(RLIMIT_CORE, 0) || !lower_limit(RLIMIT_FSIZE, 0) || !lower_limit(RLIMIT_NOFILE, kMaxOpenFiles))
    return "setrlimit refused: " + why();
  if (confinement.memory_bytes == 0) return true;
  if (kAddressSanitizer) return "no memory limit: this build's AddressSanitizer reserves more than any limit";
  if (confinement.device_files) return "no memory limit: the GPU driver reserves more than any limit";
  if (!lower_limit(RLIMIT_DATA, confinement.memory_bytes)) return "setrlimit refused: " + why();
  return true;
}

Json leave_network(const Confinement& confinement) {
  constexpr int kSpaces = CLONE_NEWNET | CLONE_NEWIPC;
  if (::unshare(kSpaces) == 0) return true;
  if (confinement.device_files) return "unshare refused: " + why() + "; sockets are forbidden by the call filter";
  if (::unshare(CLONE_NEWUSER | kSpaces) == 0) return true;
  return "unshare refused: " + why() + "; sockets are forbidden by the call filter";
}

Json drop_capabilities() {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return "capset refused: " + why();
  return true;
}

}  // namespace ks::sandbox
