// kernelseek-oracle: the trusted process that holds inputs and answers. Started by the evaluator with its channel as
// descriptor 3; not for use by hand.
#include <fcntl.h>
#include <sys/prctl.h>

#include <cstdio>

#include "oracle/oracle.h"

int main() {
  // No other process of this user may read our memory or attach to us: the answers are here.
  ::prctl(PR_SET_DUMPABLE, 0);
  if (::fcntl(ks::base::Child::kChannelFd, F_GETFD) < 0) {
    std::fprintf(stderr, "kernelseek-oracle is started by kernelseek, not by hand\n");
    return 3;
  }
  ks::base::Channel channel(ks::base::Child::kChannelFd);
  ks::oracle::serve_oracle(channel);
  return 0;
}
