// What a record says of the machine and the build that made it.
#pragma once

#include <string>

#include "base/json.h"

namespace ks::evaluator {

/// Processor, caches, kernel, compiler of this program, git revision of the tree, threads, load at the start.
Json describe_host(const std::string& device, int threads);

}  // namespace ks::evaluator
