#include "sandbox/witness.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "sandbox/sandbox.h"

namespace ks::sandbox {

Witness::Witness(int fd, pid_t pid) : fd_(fd), wake_(::eventfd(0, EFD_CLOEXEC)), pid_(pid) {
  KS_CHECK(wake_ >= 0, "a witness needs one more descriptor");
  thread_ = std::thread([this] { watch(); });
}

Witness::~Witness() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t ignored = ::write(wake_, &one, sizeof one);
  thread_.join();
  ::close(wake_);
  ::close(fd_);
}

std::string Witness::violation() const {
  return call_ < 0 ? "" : call_name(call_);
}

void Witness::watch() {
  while (true) {
    pollfd polls[2] = {{fd_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0) continue;
    if (polls[1].revents != 0 || (polls[0].revents & POLLIN) == 0) return;
    seccomp_notif notification;
    std::memset(&notification, 0, sizeof notification);
    if (::ioctl(fd_, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0) continue;
    // The call waits for an answer that never comes: the process ends here.
    call_ = notification.data.nr;
    ::kill(pid_, SIGKILL);
    return;
  }
}

}  // namespace ks::sandbox
