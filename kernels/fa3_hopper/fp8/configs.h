// The named configurations of the e4m3 kernel: pure, no CUDA, tested on the CPU.
#pragma once

#include <cstddef>

namespace ks::fa3::fp8 {

inline constexpr int kWarpgroups = 2;
inline constexpr int kRows = 64 * kWarpgroups;
inline constexpr int kTurners = 3;  ///< warps that transpose V
inline constexpr int kThreads = 128 * kWarpgroups + 128;
inline constexpr int kComputeRegisters = 232;
inline constexpr int kLoadRegisters = 40;

/// Everything that is fixed when the kernel is compiled. A literal type, so that it can be a template value.
struct Fp8Config {
  int dim;           ///< columns of Q, K, V and O that are computed; fewer may exist
  int block_keys;    ///< keys a main-loop turn: a multiple of 32, at most 128 (one 128-byte row of V transposed)
  int key_stages;    ///< slots of the K ring
  int raw_stages;    ///< slots of V as it arrives
  int value_stages;  ///< slots of V transposed
  bool query_in_registers;
  bool overlaps;  ///< this block's scores and the last block's output are under way together

  constexpr int slab_bytes() const { return (dim + 127) / 128 * 128; }
  constexpr size_t tile_bytes() const {
    return size_t{1} * kRows * slab_bytes() + size_t{1} * block_keys * slab_bytes() * (key_stages + raw_stages) +
           size_t{128} * dim * value_stages;
  }
  /// Columns of O that one product fills before they are added up: all of them where the scores' registers are needed
  /// at the same time, else 64, two of which are under way.
  constexpr int fold_columns() const { return overlaps ? dim : 64; }
  constexpr int registers() const {
    const int scores = block_keys / 2;
    const int fresh = overlaps ? dim / 2 : 0;  // else they take the place of the scores
    const int query = query_in_registers ? dim / 8 : 0;
    return dim / 2 + (scores > 64 || overlaps ? scores : 64) + fresh + block_keys / 8 + query;
  }
  constexpr bool is_valid() const {
    return dim % 32 == 0 && dim <= 256 && block_keys % 32 == 0 && block_keys <= 128 && dim % fold_columns() == 0 &&
           tile_bytes() + 1024 <= 232448 && registers() + 20 <= kComputeRegisters;
  }
};

// clang-format off
//                                     dim keys K raw V  Q in reg overlap
inline constexpr Fp8Config kFp8Shapes[] = {
    /* kHd64  */ { 64, 128, 3, 2, 3, true,  true},
    /* kHd96  */ { 96, 128, 3, 2, 3, true,  true},
    /* kHd128 */ {128, 128, 3, 2, 3, false, true},
    /* kHd256 */ {256, 128, 2, 2, 2, false, false},
};
// clang-format on

enum class Fp8Shape : int { kHd64, kHd96, kHd128, kHd256, kNone };
inline constexpr int kFp8ShapeCount = static_cast<int>(Fp8Shape::kNone);

/// The narrowest shape that holds the head dims; kNone if there is none.
constexpr Fp8Shape choose_fp8_shape(int key_dim, int value_dim) {
  const int dim = key_dim > value_dim ? key_dim : value_dim;
  for (int i = 0; i < kFp8ShapeCount; ++i) {
    if (dim <= kFp8Shapes[i].dim) return static_cast<Fp8Shape>(i);
  }
  return Fp8Shape::kNone;
}

}  // namespace ks::fa3::fp8
