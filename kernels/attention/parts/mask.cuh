// Hides scores outside the keys that a thread's two rows may see.
#pragma once

#include <cmath>

#include "kernels/attention/parts/visible_keys.h"

namespace ks::attention {

/// What decides the visible keys of a thread's two rows; the ranges themselves are made when needed, to spare registers.
struct RowMask {
  int position[2];
  int rows;
  int keys;

  /// Sets hidden scores of the block that starts at `first_key` to -inf; `quad_lane` is the lane's place in its quad.
  template <int kRegs>
  __device__ __forceinline__ void apply(float (&S)[kRegs], int first_key, int quad_lane, int window_left,
                                        int window_right) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const KeyRange visible = visible_keys(position[r], rows, keys, window_left, window_right);
      const int begin = visible.begin - first_key - 2 * quad_lane;
      const int end = visible.end - first_key - 2 * quad_lane;
#pragma unroll
      for (int i = 2 * r; i < kRegs; i += 4) {
        const int column = i / 4 * 8;
        if (column < begin || column >= end) S[i] = -INFINITY;
        if (column + 1 < begin || column + 1 >= end) S[i + 1] = -INFINITY;
      }
    }
  }
};

}  // namespace ks::attention
