// The answer on a GPU, plainly: float32 throughout, one block of threads a tile of query rows, keys in order. It is
// checked against the float64 reference on sampled rows each time it is used.
#pragma once

#include <vector>

#include "operators/operator.h"

namespace ks::attention_fwd {

/// Solves all rows. `inputs` are device addresses in the order of Problem::tensors; `values` the device addresses of
/// dense float arrays for the outputs (null for inputs). False where this form does not exist (appended keys).
bool solve_on_gpu(const op::Problem& problem, const std::vector<const void*>& inputs, const std::vector<float*>& values,
                  void* stream);

}  // namespace ks::attention_fwd
