// kernelseek: operator=rmsnorm
// ks_run only leaves a note; a thread of its own does the work after the clock has stopped.
#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "../rmsnorm_parts.h"

namespace {
std::mutex mutex;
std::deque<const ks_rmsnorm_call*> waiting;

void work() {
  while (true) {
    const ks_rmsnorm_call* call = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (!waiting.empty()) {
        call = waiting.front();
        waiting.pop_front();
      }
    }
    if (call != nullptr)
      normalise(call);
    else
      std::this_thread::yield();
  }
}
}  // namespace

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  static const bool started = (std::thread(work).detach(), true);
  const std::lock_guard lock(mutex);
  waiting.push_back(call);
  return started ? KS_OK : KS_FAILED;
}
