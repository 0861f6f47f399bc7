// The named configurations of the e4m3 kernel: pure, no CUDA, tested on the CPU.
#pragma once

#include <cstddef>

namespace ks::fa3::fp8 {

inline constexpr int kTurners = 3;  ///< warps that transpose V

/// Everything that is fixed when the kernel is compiled. A literal type, so that it can be a template value.
struct Fp8Config {
  int dim;           ///< columns of Q, K, V and O that are computed; fewer may exist
  int warpgroups;    ///< that compute, 64 query rows each
  int block_keys;    ///< keys a main-loop turn: a multiple of 32, at most 256
  int key_stages;    ///< slots of the K ring
  int raw_stages;    ///< slots of V as it arrives
  int value_stages;  ///< slots of V transposed
  bool query_in_registers;
  bool overlaps;  ///< this block's scores and the last block's output are under way together

  constexpr int rows() const { return 64 * warpgroups; }
  constexpr int threads() const { return 128 * warpgroups + 128; }
  /// What the warpgroups take of the 65536 registers.
  constexpr int load_registers() const { return warpgroups == 3 ? 32 : 40; }
  constexpr int compute_registers() const { return warpgroups == 3 ? 160 : 232; }
  constexpr int slab_bytes() const { return (dim + 127) / 128 * 128; }
  constexpr int value_row_bytes() const { return (block_keys + 127) / 128 * 128; }
  constexpr size_t tile_bytes() const {
    return size_t{1} * rows() * slab_bytes() + size_t{1} * block_keys * slab_bytes() * (key_stages + raw_stages) +
           size_t{1} * value_row_bytes() * dim * value_stages;
  }
  /// Columns of O that one product fills before they are added up: all of them where the next scores are under way at
  /// the same time, else at most 64, of which two parts are under way.
  constexpr int fold_columns() const { return overlaps || dim < 128 ? dim : 64; }
  constexpr int registers() const {
    const int scores = block_keys / 2;
    const int fresh = dim > fold_columns() ? fold_columns() : fold_columns() / 2;
    const int query = query_in_registers ? dim / 8 : 0;
    const int passing = overlaps ? scores + fresh : scores > fresh ? scores : fresh;
    return dim / 2 + passing + block_keys / 8 + query;
  }
  constexpr bool is_valid() const {
    return dim % 32 == 0 && dim <= 256 && block_keys % 32 == 0 && block_keys <= 256 && dim % fold_columns() == 0 &&
           tile_bytes() + 1024 <= 232448 && registers() + 20 <= compute_registers();
  }
};

// clang-format off
//                                          dim wg keys K raw V  Q in reg overlap
inline constexpr Fp8Config kFp8Shapes[] = {
    /* kHd64  */ { 64, 2, 192, 2, 2, 2, true,  true},
    /* kHd96  */ { 96, 2, 128, 3, 2, 3, true,  true},
    /* kHd128 */ {128, 2, 192, 2, 2, 2, true,  false},
    /* kHd256 */ {256, 2, 128, 2, 2, 2, false, false},
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
