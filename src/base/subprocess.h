// Child processes: run one to its end with a time limit, or keep one and talk to it over a socket in JSON lines, file
// descriptors passed along (SCM_RIGHTS). Children die with us (PR_SET_PDEATHSIG) and are killed as a process group.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace ks::base {

/// How to start a child.
struct SpawnOptions {
  std::vector<std::string> argv;                         ///< argv[0] is looked up in PATH
  std::string folder;                                    ///< working folder; empty: ours
  std::vector<std::pair<std::string, std::string>> env;  ///< added to, or replacing, the inherited environment
  bool clear_env = false;                                ///< start from an empty environment
  std::string input;                                     ///< given on standard input (run_process only)
  double timeout_s = 0;                                  ///< 0: none
  size_t max_output_bytes = 64u << 20;                   ///< per stream; the rest is read and dropped
};

/// How a child ended, and what it printed.
struct ProcessResult {
  int exit_code = -1;      ///< -1 if it was ended by a signal
  int signal = 0;          ///< the signal that ended it, 0 if none
  bool timed_out = false;  ///< we killed it at its limit
  std::string out, err;
  double wall_s = 0;
  bool ok() const { return exit_code == 0; }
};

/// Runs a program to its end. Throws ks::Error where it cannot be started.
ProcessResult run_process(const SpawnOptions& options);

/// "killed by SIGSEGV", "exit code 3": a child's end in words, from waitpid's status.
std::string describe_exit(int wait_status);

/// What came over a channel.
struct ChannelMessage {
  Json body;
  std::vector<int> fds;  ///< received descriptors, now the receiver's to close
};

/// One end of a Unix socket that carries JSON lines and file descriptors.
class Channel {
 public:
  explicit Channel(int fd = -1) : fd_(fd) {}
  ~Channel();
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;

  /// Sends one line; false if the other side is gone.
  bool send(const Json& body, const std::vector<int>& fds = {});
  /// Waits for one line at most timeout_s (negative: for ever); nothing on time-out or end of stream (see closed()).
  /// Throws ks::Error if the line is not JSON.
  std::optional<ChannelMessage> receive(double timeout_s);
  bool closed() const { return closed_; }
  int fd() const { return fd_; }

 private:
  bool fill(double timeout_s);
  int fd_;
  bool closed_ = false;
  std::string pending_;
  std::vector<int> pending_fds_;
};

/// A child that we talk to; its end of the channel is file descriptor 3 (option --channel is the caller's to pass).
class Child {
 public:
  explicit Child(const SpawnOptions& options);
  ~Child();  ///< kills the process group and reaps
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Channel& channel() { return channel_; }
  pid_t pid() const { return pid_; }
  bool alive();
  /// Kills the process group and returns waitpid's status.
  int kill();
  /// waitpid's status once it has ended.
  std::optional<int> status();

  static constexpr int kChannelFd = 3;

 private:
  pid_t pid_ = -1;
  Channel channel_;
  std::optional<int> status_;
};

}  // namespace ks::base
