// Names the system call for which a worker is ended. The worker's filter hands deadly calls to a descriptor that the
// trusted side holds; the kernel says there which call it was, and nothing of the worker's can forge or answer that.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <thread>

namespace ks::sandbox {

/// Waits for a deadly call of one process, notes its name and kills the process.
class Witness {
 public:
  /// `fd` came with the answer to `confine`, and is the witness's to close.
  Witness(int fd, pid_t pid);
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  /// The name of the call, "" if there was none.
  std::string violation() const;

 private:
  void watch();
  int fd_, wake_;
  pid_t pid_;
  std::atomic<int> call_{-1};
  std::thread thread_;
};

}  // namespace ks::sandbox
