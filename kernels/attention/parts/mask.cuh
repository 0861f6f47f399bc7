// Hides scores outside the keys that a thread's two rows may see.
//
// A thread's columns of a row are 8j and 8j + 1 past its quad's offset, in order. Which of them are visible is a run of
// bits, made once a row and block; the selects then test one bit each.
#pragma once

#include <cmath>

#include "kernels/attention/parts/visible_keys.h"

namespace ks::attention {

/// How many of a thread's columns lie before `column` (counted from the thread's first).
KS_HOST_DEVICE int columns_before(int column) {
  const int clamped = larger(column, 0);
  return clamped / 8 * 2 + smaller(clamped % 8, 2);
}

/// Bits [0, count) of the word that starts at bit `base`; a shift by more than 31 gives 0.
__device__ __forceinline__ uint32_t bits_below(int count, int base) {
  const int bits = count - base;
  return bits >= 32 ? 0xffffffffu : bits <= 0 ? 0u : (1u << bits) - 1u;
}

/// What decides the visible keys of a thread's two rows; the ranges themselves are made when needed, to spare
/// registers.
struct RowMask {
  int position[2];
  int rows;
  int keys;

  /// Sets hidden scores of the block that starts at `first_key` to -inf; `quad_lane` is the lane's place in its quad.
  template <int kRegs>
  __device__ __forceinline__ void apply(float (&S)[kRegs], int first_key, int quad_lane, int window_left,
                                        int window_right) const {
    constexpr int kWords = (kRegs / 2 + 31) / 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const KeyRange visible = visible_keys(position[r], rows, keys, window_left, window_right);
      const int before = columns_before(visible.begin - first_key - 2 * quad_lane);
      const int through = columns_before(visible.end - first_key - 2 * quad_lane);
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        const uint32_t bits = bits_below(through, 32 * word) & ~bits_below(before, 32 * word);
#pragma unroll
        for (int bit = 0; bit < 32; ++bit) {
          const int column = 32 * word + bit;
          const int i = column / 2 * 4 + 2 * r + column % 2;
          if (i < kRegs && !(bits & (1u << bit))) S[i] = -INFINITY;
        }
      }
    }
  }
};

}  // namespace ks::attention
