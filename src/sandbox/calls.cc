// The filter on system calls (seccomp, by libseccomp): a list of what is allowed; what is deadly ends the process;
// everything else answers EPERM.
#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "sandbox/protections.h"
#include "sandbox/rules.h"

namespace ks::sandbox {
namespace {

constexpr uint64_t kChannel = 3;  // the descriptor of the worker's protocol
constexpr uint64_t kWriteFlags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);

struct Release {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};

/// A filter under construction; the first failure is kept.
class Filter {
 public:
  explicit Filter(uint32_t otherwise) : context_(::seccomp_init(otherwise)) {
    if (context_ == nullptr) problem_ = "seccomp_init failed";
  }

  void rule(uint32_t action, const char* name, std::vector<scmp_arg_cmp> conditions = {}) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || number < 0 || context_ == nullptr) return;
    const int status = ::seccomp_rule_add_array(context_.get(), action, number,
                                                static_cast<unsigned>(conditions.size()), conditions.data());
    if (status != 0 && problem_.empty()) problem_ = fmt::format("no rule for {}: {}", name, std::strerror(-status));
  }

  Json load() {
    if (context_ != nullptr) {
      ::seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
      ::seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1);
      ::seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_NNP, 0);  // set_no_new_privileges() has done it
      ::seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    }
    if (!problem_.empty()) return problem_;
    if (const int status = ::seccomp_load(context_.get()); status != 0)
      return std::string("the kernel refused the filter: ") + std::strerror(-status);
    return true;
  }

  int witness_fd() const { return ::seccomp_notify_fd(context_.get()); }

 private:
  std::unique_ptr<void, Release> context_;
  std::string problem_;
};

scmp_arg_cmp equal(unsigned argument, uint64_t value) {
  return SCMP_CMP(argument, SCMP_CMP_EQ, value);
}
scmp_arg_cmp other_than(unsigned argument, uint64_t value) {
  return SCMP_CMP(argument, SCMP_CMP_NE, value);
}
scmp_arg_cmp has_bits(unsigned argument, uint64_t mask, uint64_t value) {
  return SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, value);
}

/// New threads, never new processes. clone3 hides its flags from the filter: the C library then falls back to clone.
void rule_threads(Filter& filter, uint32_t deadly) {
  filter.rule(SCMP_ACT_ALLOW, "clone", {has_bits(0, CLONE_THREAD, CLONE_THREAD)});
  filter.rule(deadly, "clone", {has_bits(0, CLONE_THREAD, 0)});
  filter.rule(SCMP_ACT_ERRNO(ENOSYS), "clone3");
}

/// Signals to ourselves (abort) and to nobody else.
void rule_signals(Filter& filter, uint32_t deadly) {
  const auto self = static_cast<uint64_t>(::getpid());
  for (const char* name : {"kill", "tgkill"}) {
    filter.rule(SCMP_ACT_ALLOW, name, {equal(0, self)});
    filter.rule(deadly, name, {other_than(0, self)});
  }
}

/// The worker's channel and no other socket.
void rule_channel(Filter& filter, const Confinement& confinement) {
  for (const char* name : {"recvmsg", "sendmsg"}) filter.rule(SCMP_ACT_ALLOW, name, {equal(0, kChannel)});
  if (!confinement.interpreter) return;
  for (const char* name : {"recvfrom", "sendto"}) filter.rule(SCMP_ACT_ALLOW, name, {equal(0, kChannel)});
}

/// Files: opened for reading only, written nowhere. seal() takes reading away as well.
void rule_files(Filter& filter, const Confinement& confinement) {
  if (confinement.device_files) {
    filter.rule(SCMP_ACT_ALLOW, "open");
    filter.rule(SCMP_ACT_ALLOW, "openat");
    return;
  }
  filter.rule(SCMP_ACT_ALLOW, "open", {has_bits(1, kWriteFlags, 0)});
  filter.rule(SCMP_ACT_ALLOW, "openat", {has_bits(2, kWriteFlags, 0)});
}

void rule_rest(Filter& filter, const Confinement& confinement) {
  filter.rule(SCMP_ACT_ALLOW, "seccomp");  // for seal(), which then makes it deadly
  for (const int what : {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, 0x53564d41 /* PR_SET_VMA */})
    filter.rule(SCMP_ACT_ALLOW, "prctl", {equal(0, static_cast<uint64_t>(what))});
  filter.rule(SCMP_ACT_ALLOW, "prctl", {equal(0, PR_SET_DUMPABLE), equal(1, 0)});  // only ever less
  filter.rule(SCMP_ACT_ALLOW, "prlimit64", {equal(2, 0)});                         // reading a limit, not setting it
  if (!confinement.device_files && !confinement.interpreter) {
    filter.rule(SCMP_ACT_ALLOW, "fcntl", {equal(1, F_GETFD)});
    filter.rule(SCMP_ACT_ALLOW, "fcntl", {equal(1, F_GETFL)});
    filter.rule(SCMP_ACT_ALLOW, "fcntl", {equal(1, F_SETFD)});
    filter.rule(SCMP_ACT_ALLOW, "fcntl", {equal(1, F_GET_SEALS)});
    return;
  }
  for (const char* name : kInterpreterCalls) filter.rule(SCMP_ACT_ALLOW, name);
  if (confinement.device_files) filter.rule(SCMP_ACT_ALLOW, "sched_setaffinity");
}

Json load_filter(const Confinement& confinement, uint32_t deadly, int& witness_fd) {
  Filter filter(SCMP_ACT_ERRNO(EPERM));
  for (const char* name : kDeadlyCalls) {
    const bool lets_through = confinement.may_execute && std::string_view(name) == "execve";
    filter.rule(lets_through ? SCMP_ACT_ALLOW : deadly, name);
  }
  for (const char* name : kAllowedCalls) filter.rule(SCMP_ACT_ALLOW, name);
  rule_threads(filter, deadly);
  rule_signals(filter, deadly);
  rule_channel(filter, confinement);
  rule_files(filter, confinement);
  rule_rest(filter, confinement);
  const Json done = filter.load();
  if (done == true && deadly == SCMP_ACT_NOTIFY) witness_fd = filter.witness_fd();
  return done;
}

}  // namespace

Json filter_calls(const Confinement& confinement, int& witness_fd) {
  if (confinement.want_witness)
    if (const Json done = load_filter(confinement, SCMP_ACT_NOTIFY, witness_fd); done == true) return done;
  return load_filter(confinement, SCMP_ACT_KILL_PROCESS, witness_fd);
}

Json close_filter(const Confinement& confinement) {
  Filter filter(SCMP_ACT_ALLOW);
  filter.rule(SCMP_ACT_KILL_PROCESS, "seccomp");
  if (!confinement.interpreter && !confinement.device_files)
    for (const char* name : kOpenCalls) filter.rule(SCMP_ACT_ERRNO(EPERM), name);
  return filter.load();
}

}  // namespace ks::sandbox
