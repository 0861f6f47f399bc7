// From a shape to a plan for the decode kernel: which compiled kernel, which boxes the copy engine brings. No pointers.
#pragma once

#include <cstdint>

#include "attention_fwd.h"
#include "kernels/fa3_hopper/decode/decode_configs.h"
#include "kernels/fa3_hopper/decode/decode_params.h"
#include "kernels/fa3_hopper/device.h"

namespace ks::fa3 {

struct DecodePlan {
  DecodeTerms params;  ///< without pointers
  MapSpec query;
  MapSpec key;
  MapSpec value;
  int kernel;  ///< decode_kernel_index()
  Element type;
  bool e4m3;
  int blocks;            ///< of the grid
  int64_t partial_rows;  ///< rows of partial results in scratch
  int columns;           ///< of such a row
  uint64_t scratch_bytes;
  uint64_t state_bytes;
};

inline constexpr int kDecodeShapeCount = kDecodeDimCount * kDecodeTileCount;

/// Place of a kernel in the family's table. Shape first, then Q's type, then the keys'.
constexpr int decode_kernel_index(int shape, Element type, bool e4m3) {
  return (shape * 2 + static_cast<int>(type)) * 2 + (e4m3 ? 1 : 0);
}

/// Fills the plan for a device with so many multiprocessors; false if this shape is not handled.
bool make_decode_plan(const ks_attention_fwd_shape& shape, int multiprocessors, DecodePlan& plan);

}  // namespace ks::fa3
