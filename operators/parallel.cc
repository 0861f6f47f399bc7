#include "operators/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ks::op {
namespace {

/// Runs `body` on `threads` threads, ours among them.
void run_on(int threads, const std::function<void(int)>& body) {
  std::exception_ptr failure;
  std::mutex mutex;
  const auto guarded = [&](int which) {
    try {
      body(which);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (int which = 1; which < threads; ++which) others.emplace_back(guarded, which);
  guarded(0);
  for (auto& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void parallel_ranges(int64_t count, int threads, const std::function<void(int64_t, int64_t)>& work) {
  const auto pieces = static_cast<int>(std::clamp<int64_t>(std::min<int64_t>(threads, count), 1, 1024));
  if (pieces == 1) {
    work(0, count);
    return;
  }
  run_on(pieces, [&](int which) { work(count * which / pieces, count * (which + 1) / pieces); });
}

void parallel_tasks(int64_t count, int threads, const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0};
  const auto workers = static_cast<int>(std::clamp<int64_t>(std::min<int64_t>(threads, count), 1, 1024));
  run_on(workers, [&](int) {
    for (int64_t task = next++; task < count; task = next++) work(task);
  });
}

int default_threads() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace ks::op
