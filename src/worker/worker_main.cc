// kernelseek-worker: runs one native candidate and nothing else. Started by the evaluator with its channel as
// descriptor 3; not for use by hand. It has no answers and no clock that counts.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "worker/serve.h"

namespace {

/// Nothing of the parent's but the channel: no descriptor, no terminal.
void keep_only_the_channel() {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(nothing, fd);
  if (nothing > ks::base::Child::kChannelFd) ::close(nothing);
  ::close_range(ks::base::Child::kChannelFd + 1, ~0u, 0);
}

}  // namespace

int main() {
  if (::fcntl(ks::base::Child::kChannelFd, F_GETFD) < 0) {
    std::fprintf(stderr, "kernelseek-worker is started by kernelseek, not by hand\n");
    return 3;
  }
  keep_only_the_channel();
  int status = 0;
  try {
    ks::base::Channel channel(ks::base::Child::kChannelFd);
    ks::worker::serve_worker(channel);
  } catch (const std::exception&) {
    status = 2;  // something else than a request came over the channel
  }
  // Not exit(): a candidate's destructors have no business here.
  ::_exit(status);
}
