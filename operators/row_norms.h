// The two sums that a relative L2 error needs, over one row, at memory speed: in vectors of eight where the processor
// has them.
#pragma once

#include <cstddef>

#include "core/dtype.h"

namespace ks::op {

struct RowNorms {
  double difference = 0;  ///< sum of (got - want)^2; NaN or infinity if `got` is not finite
  double want = 0;        ///< sum of want^2
};

RowNorms row_norms(core::Dtype dtype, const void* got, const float* want, size_t columns);

}  // namespace ks::op
