// The least time that a call can take: its operations at the device's peak rate. Data: data/devices/*.toml.
#pragma once

#include <string>

#include "evaluator/oracle_client.h"

namespace ks::evaluator {

/// Microseconds. The rates are above what any such device sustains, so that only a false time can lie below.
double bound_us(const std::string& device, int threads, const ProblemInfo& problem);

}  // namespace ks::evaluator
