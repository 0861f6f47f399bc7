// The named configurations of the Hopper forward kernel and the choice among them: pure, no CUDA, tested on the CPU.
#pragma once

#include <cstddef>

#include "kernels/tile/element.h"

namespace ks::fa3 {

using tile::Element;

/// Everything that is fixed when the kernel is compiled. A literal type, so that it can be a template value.
struct ForwardConfig {
  Element type;
  int key_dim;      ///< columns of Q and K that are computed, multiple of 16; fewer may exist
  int value_dim;    ///< columns of V and O that are computed
  int warpgroups;   ///< compute warpgroups, 64 query rows each
  int block_keys;   ///< keys a main-loop turn
  int stages;       ///< slots of the K ring and of the V ring
  int query_slots;  ///< 2: the next tile's Q arrives under this tile's work
  int blocks_per_sm;
  bool softcap;

  constexpr int rows() const { return 64 * warpgroups; }
  constexpr bool moves_registers() const { return warpgroups > 1; }
  constexpr int load_threads() const { return moves_registers() ? 128 : 32; }
  constexpr int threads() const { return 128 * warpgroups + load_threads(); }
  constexpr int load_registers() const { return warpgroups == 3 ? 32 : 40; }
  constexpr int compute_registers() const { return warpgroups == 3 ? 160 : 232; }
  /// Above 128 output columns the rescale of O is worth hiding under the score product.
  constexpr bool rescales_under_scores() const { return value_dim > 128; }
  constexpr bool takes_turns() const { return warpgroups > 1; }
  constexpr int slab_columns(int columns) const { return (columns + 63) / 64 * 64; }
  constexpr size_t tile_bytes() const {
    const size_t query = size_t{2} * rows() * slab_columns(key_dim) * query_slots;
    const size_t key = size_t{2} * block_keys * slab_columns(key_dim) * stages;
    const size_t value = size_t{2} * block_keys * slab_columns(value_dim) * stages;
    return query + key + value;
  }
  constexpr bool is_valid() const {
    return key_dim % 16 == 0 && value_dim % 16 == 0 && value_dim <= slab_columns(key_dim) && block_keys % 16 == 0 &&
           tile_bytes() + 2048 <= size_t{232448} / blocks_per_sm;
  }
};

// clang-format off
//                                           type            Dk   Dv  wg keys st q  sm softcap
inline constexpr ForwardConfig kHd64       = {Element::kBf16,  64,  64, 2, 128, 3, 2, 1, false};
inline constexpr ForwardConfig kHd64Small  = {Element::kBf16,  64,  64, 1, 128, 2, 2, 2, false};
inline constexpr ForwardConfig kHd96       = {Element::kBf16,  96,  96, 2, 128, 2, 1, 1, false};
inline constexpr ForwardConfig kHd128      = {Element::kBf16, 128, 128, 2, 128, 2, 2, 1, false};
inline constexpr ForwardConfig kHd128Wide  = {Element::kBf16, 128, 128, 2, 160, 2, 2, 1, false};
inline constexpr ForwardConfig kHd128Small = {Element::kBf16, 128, 128, 1,  64, 2, 1, 2, false};
inline constexpr ForwardConfig kHd192x128  = {Element::kBf16, 192, 128, 2, 128, 2, 1, 1, false};
inline constexpr ForwardConfig kHd192      = {Element::kBf16, 192, 192, 2,  96, 2, 1, 1, false};
inline constexpr ForwardConfig kHd256      = {Element::kBf16, 256, 256, 2,  80, 2, 1, 1, false};
// clang-format on

/// The shapes by name; the order is that of kForwardShapes.
enum class ForwardShape : int {
  kHd64,
  kHd64Small,
  kHd96,
  kHd128,
  kHd128Wide,
  kHd128Small,
  kHd192x128,
  kHd192,
  kHd256,
  kNone,  ///< no shape is wide enough
};
inline constexpr int kShapeCount = static_cast<int>(ForwardShape::kNone);
inline constexpr ForwardConfig kForwardShapes[kShapeCount] = {
    kHd64, kHd64Small, kHd96, kHd128, kHd128Wide, kHd128Small, kHd192x128, kHd192, kHd256};

/// A shape for an element type, with or without a soft cap.
constexpr ForwardConfig config_of(ForwardShape shape, Element type, bool softcap) {
  ForwardConfig config = kForwardShapes[static_cast<int>(shape)];
  config.type = type;
  config.softcap = softcap;
  return config;
}

/// What the choice depends on.
struct ForwardChoice {
  int key_dim;
  int value_dim;
  int rows_per_group;  ///< most query rows of one (member, kv head): positions times packed heads
  bool masked;         ///< causal or window: some blocks need a mask
  bool paged;
};

/// The shape for a problem; ForwardShape::kNone if no head dim is wide enough.
constexpr ForwardShape choose_shape(const ForwardChoice& choice) {
  const bool few_rows = choice.rows_per_group <= 64;
  if (choice.key_dim <= 64 && choice.value_dim <= 64) return few_rows ? ForwardShape::kHd64Small : ForwardShape::kHd64;
  if (choice.key_dim <= 96 && choice.value_dim <= 96 && !few_rows) return ForwardShape::kHd96;
  if (choice.key_dim <= 128 && choice.value_dim <= 128) {
    if (few_rows) return ForwardShape::kHd128Small;
    return choice.masked || choice.paged ? ForwardShape::kHd128 : ForwardShape::kHd128Wide;
  }
  if (choice.key_dim <= 192 && choice.value_dim <= 128) return ForwardShape::kHd192x128;
  if (choice.key_dim <= 192 && choice.value_dim <= 192) return ForwardShape::kHd192;
  if (choice.key_dim <= 256 && choice.value_dim <= 256) return ForwardShape::kHd256;
  return ForwardShape::kNone;
}

}  // namespace ks::fa3
