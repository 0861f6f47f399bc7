// Time: a monotonic clock for durations, the wall clock for records.
#pragma once

#include <cstdint>
#include <string>

namespace ks::base {

/// Nanoseconds of CLOCK_MONOTONIC.
int64_t monotonic_ns();

/// Seconds since the epoch, wall clock.
double unix_seconds();

/// "2025-01-31T12:00:00.123Z" for seconds since the epoch.
std::string iso8601(double unix_seconds);

}  // namespace ks::base
