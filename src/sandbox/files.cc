// Landlock rules: what may be read, nothing to be written. Kernels before 5.13 have none; the record says so.
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sandbox/protections.h"

namespace ks::sandbox {
namespace {

// Bits by the version of the rules in which they came; the headers at hand may be older than the kernel.
constexpr uint64_t kReads = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kAllOfVersion1 = (1ull << 13) - 1;
constexpr uint64_t kRefer = 1ull << 13;     // version 2
constexpr uint64_t kTruncate = 1ull << 14;  // version 3

/// The system's own folders and files that loaders and run-time libraries read.
constexpr const char* kSystemPaths[] = {
    "/usr",         "/lib",         "/lib64",     "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/alternatives",
    "/opt",         "/sys/devices", "/proc/self", "/proc/cpuinfo",    "/proc/meminfo",   "/proc/stat",
    "/proc/sys/vm", "/dev/null",    "/dev/zero",  "/dev/urandom"};
/// What a GPU driver reads and writes besides.
constexpr const char* kDevicePaths[] = {"/dev", "/proc/driver", "/proc/devices", "/sys", "/etc",
                                        "/run", "/var/run",     "/proc",         "/tmp"};

/// Lets everything below `path` be used in the ways of `access`; a path that is not there is nothing to allow.
bool allow(int rules, const char* path, uint64_t access) {
  const int fd = ::open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return true;
  landlock_path_beneath_attr rule{access, fd};
  // A plain file takes no right that is meant for folders.
  const int status_folder =
      static_cast<int>(::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0));
  rule.allowed_access &= ~static_cast<uint64_t>(LANDLOCK_ACCESS_FS_READ_DIR);
  const bool ok = status_folder == 0 || (errno == EINVAL && ::syscall(SYS_landlock_add_rule, rules,
                                                                      LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0);
  ::close(fd);
  return ok;
}

}  // namespace

Json restrict_files(const Confinement& confinement) {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return std::string("this kernel has no Landlock: ") + std::strerror(errno);
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = kAllOfVersion1 | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
  const int rules = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
  if (rules < 0) return std::string("Landlock refused: ") + std::strerror(errno);
  bool ok = true;
  for (const char* path : kSystemPaths) ok &= allow(rules, path, kReads);
  for (const auto& path : confinement.read_paths) ok &= allow(rules, path.c_str(), kReads);
  if (confinement.device_files) {
    for (const char* path : kDevicePaths) ok &= allow(rules, path, kReads);
    ok &= allow(rules, "/dev", kReads | LANDLOCK_ACCESS_FS_WRITE_FILE);
  }
  ok = ok && ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  const int reason = errno;
  ::close(rules);
  if (!ok) return std::string("Landlock refused: ") + std::strerror(reason);
  return true;
}

}  // namespace ks::sandbox
