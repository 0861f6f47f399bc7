// From a shape to a plan: which compiled kernel, how rows are tiled, which boxes the copy engine brings. No pointers.
#pragma once

#include <cstdint>

#include "attention_fwd.h"
#include "kernels/fa3_hopper/configs.h"
#include "kernels/fa3_hopper/device.h"
#include "kernels/fa3_hopper/forward_params.h"

namespace ks::fa3 {

struct Plan {
  ForwardTerms params;  ///< without pointers
  MapSpec query;
  MapSpec key;
  MapSpec value;
  MapSpec output;
  int kernel;  ///< kernel_index()
  Element type;
  int blocks_per_sm;
  int64_t most_units;    ///< blocks' worth of work: tiles times splits; no call of this shape has more
  int64_t partial_rows;  ///< rows of partial results in scratch
  int value_columns;     ///< columns of such a row
  uint64_t scratch_bytes;
  uint64_t state_bytes;
};

/// Bytes of `state` before the arrival counters of split tiles, and of scratch before the partial outputs.
constexpr uint64_t kCounterBytes = 64;

/// Place of a kernel in the entry's table.
constexpr int kernel_index(ForwardShape shape, Element type, bool softcap) {
  return (static_cast<int>(shape) * 2 + static_cast<int>(type)) * 2 + (softcap ? 1 : 0);
}

/// Fills the plan for a device with so many multiprocessors; false if this shape is not handled.
bool make_plan(const ks_attention_fwd_shape& shape, int multiprocessors, Plan& plan);

}  // namespace ks::fa3
