#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"

extern char** environ;

namespace ks::base {
namespace {

constexpr size_t kMaxFdsPerMessage = 64;
constexpr size_t kMaxLineBytes = 256u << 20;

std::vector<std::string> child_environment(const SpawnOptions& options) {
  std::vector<std::string> result;
  if (!options.clear_env) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text(*entry);
      const auto name = text.substr(0, text.find('='));
      bool replaced = false;
      for (const auto& [key, value] : options.env) replaced |= key == name;
      if (!replaced) result.push_back(text);
    }
  }
  for (const auto& [key, value] : options.env) result.push_back(key + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Runs in the child between fork and exec: only async-signal-safe calls.
[[noreturn]] void exec_child(const SpawnOptions& options, const int fds[4], char* const argv[], char* const envp[],
                             int error_pipe, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  bool ok = ::getppid() == parent;
  // First out of the way of 0..3, then into place.
  int moved[4];
  for (int i = 0; i < 4; ++i) moved[i] = fds[i] < 0 ? -1 : ::fcntl(fds[i], F_DUPFD, 16);
  const int report = ::fcntl(error_pipe, F_DUPFD_CLOEXEC, 16);
  for (int i = 0; i < 4; ++i) {
    if (moved[i] < 0) continue;
    ok = ok && ::dup2(moved[i], i) >= 0;
    ::close(moved[i]);
  }
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ok = false;
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (ok) ::execvpe(argv[0], argv, envp);
  const int why = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(report, &why, sizeof why);
  ::_exit(127);
}

/// Forks and executes; fds[i] becomes descriptor i of the child (-1: inherited).
pid_t spawn(const SpawnOptions& options, const int fds[4]) {
  KS_CHECK(!options.argv.empty(), "a child needs a program");
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env = child_environment(options);
  const auto argv_pointers = pointers(argv);
  const auto env_pointers = pointers(env);
  int error_pipe[2];
  if (::pipe2(error_pipe, O_CLOEXEC) != 0) throw Error("cannot make a pipe: {}", std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error("cannot start {}: {}", argv[0], std::strerror(errno));
  if (pid == 0) exec_child(options, fds, argv_pointers.data(), env_pointers.data(), error_pipe[1], parent);
  ::close(error_pipe[1]);
  int why = 0;
  const ssize_t got = ::read(error_pipe[0], &why, sizeof why);
  ::close(error_pipe[0]);
  if (got == sizeof why) {
    ::waitpid(pid, nullptr, 0);
    throw Error("cannot start {}{}: {}", argv[0], options.folder.empty() ? "" : " in " + options.folder,
                std::strerror(why));
  }
  return pid;
}

void set_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/// Reads what is there into `text` (up to the limit); false at the end of the stream.
bool drain(int fd, std::string& text, size_t limit) {
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got > 0) {
      if (text.size() < limit) text.append(buffer, std::min<size_t>(static_cast<size_t>(got), limit - text.size()));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

/// Moves bytes between us and the child until it ends or its time is up.
void pump(pid_t pid, int in, int out, int err, const SpawnOptions& options, ProcessResult& result) {
  const int64_t start = monotonic_ns();
  std::string_view input = options.input;
  bool out_open = true, err_open = true, in_open = true;
  while (out_open || err_open) {
    if (in_open && input.empty()) {
      ::close(in);
      in_open = false;
    }
    pollfd polls[3] = {
        {out_open ? out : -1, POLLIN, 0}, {err_open ? err : -1, POLLIN, 0}, {in_open ? in : -1, POLLOUT, 0}};
    int wait_ms = -1;
    if (options.timeout_s > 0) {
      const double left = options.timeout_s - static_cast<double>(monotonic_ns() - start) * 1e-9;
      if (left <= 0) {
        result.timed_out = true;
        ::kill(-pid, SIGKILL);
        break;
      }
      wait_ms = static_cast<int>(left * 1000) + 1;
    }
    if (::poll(polls, 3, wait_ms) < 0 && errno != EINTR) break;
    if (polls[0].revents != 0) out_open = drain(out, result.out, options.max_output_bytes);
    if (polls[1].revents != 0) err_open = drain(err, result.err, options.max_output_bytes);
    if (polls[2].revents != 0) {
      const ssize_t written = ::write(in, input.data(), input.size());
      if (written > 0) input.remove_prefix(static_cast<size_t>(written));
      if (written < 0 && errno != EAGAIN && errno != EINTR) input = {};
    }
  }
  if (in_open) ::close(in);
}

}  // namespace

ProcessResult run_process(const SpawnOptions& options) {
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
    throw Error("cannot make a pipe: {}", std::strerror(errno));
  const int fds[4] = {in[0], out[1], err[1], -1};
  const int64_t start = monotonic_ns();
  pid_t pid;
  try {
    pid = spawn(options, fds);
  } catch (...) {
    for (int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) ::close(fd);
    throw;
  }
  for (int fd : {in[0], out[1], err[1]}) ::close(fd);
  for (int fd : {in[1], out[0], err[0]}) set_nonblocking(fd);
  struct sigaction ignore = {}, previous = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &previous);
  ProcessResult result;
  pump(pid, in[1], out[0], err[0], options, result);
  ::close(out[0]);
  ::close(err[0]);
  ::sigaction(SIGPIPE, &previous, nullptr);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(-pid, SIGKILL);  // whatever it left behind in its group
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.wall_s = static_cast<double>(monotonic_ns() - start) * 1e-9;
  return result;
}

std::string describe_exit(int status) {
  if (WIFEXITED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return fmt::format("killed by SIG{}", name != nullptr ? name : std::to_string(WTERMSIG(status)));
  }
  return "unknown end";
}

Channel::~Channel() {
  for (int fd : pending_fds_) ::close(fd);
  if (fd_ >= 0) ::close(fd_);
}

Channel::Channel(Channel&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      closed_(other.closed_),
      pending_(std::move(other.pending_)),
      pending_fds_(std::exchange(other.pending_fds_, {})) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(closed_, other.closed_);
  std::swap(pending_, other.pending_);
  std::swap(pending_fds_, other.pending_fds_);
  return *this;
}

bool Channel::send(const Json& body, const std::vector<int>& fds) {
  KS_CHECK(fds.size() <= kMaxFdsPerMessage, "too many descriptors in one message");
  const std::string text = to_line(body) + "\n";
  size_t sent = 0;
  bool fds_left = !fds.empty();
  while (sent < text.size()) {
    iovec piece{const_cast<char*>(text.data()) + sent, text.size() - sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFdsPerMessage)] = {};
    if (fds_left) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    }
    const ssize_t got = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      closed_ = true;
      return false;
    }
    fds_left = false;
    sent += static_cast<size_t>(got);
  }
  return true;
}

bool Channel::fill(double timeout_s) {
  pollfd poll_entry{fd_, POLLIN, 0};
  const int wait_ms = timeout_s < 0 ? -1 : static_cast<int>(timeout_s * 1000);
  const int ready = ::poll(&poll_entry, 1, wait_ms);
  if (ready <= 0) return ready < 0 && errno == EINTR;
  char buffer[65536];
  iovec piece{buffer, sizeof buffer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFdsPerMessage)];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
  if (got <= 0) {
    closed_ = !(got < 0 && (errno == EINTR || errno == EAGAIN));
    return !closed_;
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    const int* received = reinterpret_cast<const int*>(CMSG_DATA(header));
    pending_fds_.insert(pending_fds_.end(), received, received + count);
  }
  pending_.append(buffer, static_cast<size_t>(got));
  return true;
}

std::optional<ChannelMessage> Channel::receive(double timeout_s) {
  const int64_t start = monotonic_ns();
  size_t searched = 0;
  while (true) {
    const size_t end = pending_.find('\n', searched);
    if (end != std::string::npos) {
      ChannelMessage message;
      const std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      message.fds = std::exchange(pending_fds_, {});
      message.body = parse_json(line, "message");
      return message;
    }
    searched = pending_.size();
    if (pending_.size() > kMaxLineBytes) throw Error("message: a line of more than {} bytes", kMaxLineBytes);
    double left = -1;
    if (timeout_s >= 0) left = std::max(0.0, timeout_s - static_cast<double>(monotonic_ns() - start) * 1e-9);
    if (closed_ || !fill(left)) return std::nullopt;
  }
}

Child::Child(const SpawnOptions& options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error("cannot make a socket pair: {}", std::strerror(errno));
  channel_ = Channel(ends[0]);
  const int fds[4] = {-1, -1, -1, ends[1]};
  try {
    pid_ = spawn(options, fds);
  } catch (...) {
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
}

Child::~Child() {
  kill();
}

bool Child::alive() {
  return !status().has_value();
}

std::optional<int> Child::status() {
  if (status_) return status_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

int Child::kill() {
  if (!status()) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
  }
  ::kill(-pid_, SIGKILL);
  return *status_;
}

}  // namespace ks::base
