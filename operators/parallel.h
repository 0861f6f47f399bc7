// Splits work over threads: a range into contiguous pieces, or tasks handed out one by one. The first exception of any
// piece is rethrown to the caller.
#pragma once

#include <cstdint>
#include <functional>

namespace ks::op {

/// Calls work(begin, end) on pieces that together are [0, count).
void parallel_ranges(int64_t count, int threads, const std::function<void(int64_t, int64_t)>& work);

/// Calls work(i) for each i in [0, count), each thread taking the next when it is done with one.
void parallel_tasks(int64_t count, int threads, const std::function<void(int64_t)>& work);

/// Threads worth starting here for work that is given no number: the processors at hand.
int default_threads();

}  // namespace ks::op
