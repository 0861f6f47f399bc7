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
  /// What the warpgroups take of the 65536 registers: n compute groups and one that loads.
  constexpr int load_registers() const { return warpgroups == 3 ? 32 : needs_all_registers() ? 40 : 56; }
  constexpr int compute_registers() const { return warpgroups == 3 ? 160 : needs_all_registers() ? 232 : 224; }
  constexpr bool needs_all_registers() const { return value_dim / 2 + block_keys * 3 / 4 > 180; }
  /// Whether small pages may be gathered: the code for it needs registers that some shapes have not left.
  constexpr bool may_gather() const { return warpgroups < 3 && !needs_all_registers(); }
  /// Whether the wait for the output product is held back until half of the exponentials are done (forward_attend.cuh).
  /// Measured: 4 % faster at 96 columns, 1 to 2 % at 64, 160 keys and 192, but 2 to 4 % slower at 128 columns and keys.
  /// Not where several blocks share an SM (the others hide the product), nor at 256 (no registers to hold weights in).
  constexpr bool holds_output_wait() const {
    return warpgroups > 1 && value_dim <= 192 && !(value_dim == 128 && key_dim == 128 && block_keys == 128);
  }
  /// Whether O is left alone where no row's maximum has moved. That is a branch, and the multiplications then stand by
  /// themselves; where they run under the exponentials they are free, if registers allow that.
  constexpr bool rescales_if_moved() const { return value_dim == 256 || block_keys > 128 || warpgroups == 3; }
  /// Whether compute warps have registers for a copy of what is to be done.
  constexpr bool copies_work() const {
    return warpgroups < 3 && !needs_all_registers() && block_keys <= 128 && !softcap;
  }
  /// Tiles of few rows may share their keys out among several blocks.
  constexpr bool may_split() const { return warpgroups == 1; }
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
           tile_bytes() + 1024 <= size_t{232448} / blocks_per_sm;
  }
};

// clang-format off
//                                           type            Dk   Dv  wg keys st q  sm softcap
inline constexpr ForwardConfig kHd64Long   = {Element::kBf16,     64,  64, 3, 128, 3, 2, 1, false};
inline constexpr ForwardConfig kHd64Narrow = {Element::kBf16,     64,  64, 1,  80, 2, 2, 3, false};
inline constexpr ForwardConfig kHd64Small  = {Element::kBf16,     64,  64, 1, 128, 3, 1, 2, false};
inline constexpr ForwardConfig kHd96       = {Element::kBf16,     96,  96, 2, 128, 2, 2, 1, false};
inline constexpr ForwardConfig kHd96Small  = {Element::kBf16,     96,  96, 1,  64, 3, 1, 2, false};
inline constexpr ForwardConfig kHd128      = {Element::kBf16,    128, 128, 2, 128, 2, 2, 1, false};
inline constexpr ForwardConfig kHd128Wide  = {Element::kBf16,    128, 128, 2, 160, 2, 2, 1, false};
inline constexpr ForwardConfig kHd128Small = {Element::kBf16,    128, 128, 1,  64, 3, 1, 2, false};
inline constexpr ForwardConfig kHd192x128  = {Element::kBf16,    192, 128, 2, 128, 2, 1, 1, false};
inline constexpr ForwardConfig kHd192      = {Element::kBf16,    192, 192, 2,  96, 2, 1, 1, false};
inline constexpr ForwardConfig kHd192Small = {Element::kBf16,    192, 192, 1,  64, 3, 1, 1, false};
inline constexpr ForwardConfig kHd256      = {Element::kBf16,    256, 256, 2,  80, 2, 1, 1, false};
inline constexpr ForwardConfig kHd256Small = {Element::kBf16,    256, 256, 1,  64, 2, 1, 1, false};
// clang-format on

/// The shapes by name; the order is that of kForwardShapes.
enum class ForwardShape : int {
  kHd64Long,
  kHd64Narrow,
  kHd64Small,
  kHd96,
  kHd96Small,
  kHd128,
  kHd128Wide,
  kHd128Small,
  kHd192x128,
  kHd192,
  kHd192Small,
  kHd256,
  kHd256Small,
  kNone,  ///< no shape is wide enough
};
inline constexpr int kShapeCount = static_cast<int>(ForwardShape::kNone);
inline constexpr ForwardConfig kForwardShapes[kShapeCount] = {
    kHd64Long,   kHd64Narrow, kHd64Small, kHd96,       kHd96Small, kHd128,     kHd128Wide,
    kHd128Small, kHd192x128,  kHd192,     kHd192Small, kHd256,     kHd256Small};

/// A shape for an element type, with or without a soft cap.
constexpr ForwardConfig config_of(ForwardShape shape, Element type, bool softcap) {
  ForwardConfig config = kForwardShapes[static_cast<int>(shape)];
  config.type = type;
  config.softcap = softcap;
  // The cap needs registers that these have not left.
  if (softcap && shape == ForwardShape::kHd64Long) config.block_keys = 112;
  if (softcap && shape == ForwardShape::kHd64Narrow) config.block_keys = 64;
  if (softcap && shape == ForwardShape::kHd64Small) config.block_keys = 64;
  if (softcap && shape == ForwardShape::kHd128Wide) config.block_keys = 144;
  return config;
}

/// What the choice depends on.
struct ForwardChoice {
  int key_dim;
  int value_dim;
  int rows_per_group;  ///< most query rows of one (member, kv head): positions times packed heads
  int ratio;           ///< query heads a kv head
  bool masked;         ///< causal or window: some blocks need a mask
  bool gathers;        ///< pages are too small for boxes
  int visible_keys;    ///< keys that a position of the longest member sees, on average
};

/// Time of a tile's main loop in arbitrary units: blocks of `block` keys, each with the work of `fixed` more.
constexpr int loop_cost(int keys, int block, int fixed) {
  return (keys + block - 1) / block * (block + fixed);
}

constexpr ForwardShape choose_hd64(const ForwardChoice& choice) {
  if (choice.gathers) return ForwardShape::kHd64Narrow;
  // Measured: below 512 visible keys (windows, short sequences) three small blocks an SM beat one of three groups, also
  // where whole 128-key blocks would leave much of the last one empty.
  const bool wasteful = !choice.masked && loop_cost(choice.visible_keys, 128, 0) * 10 > choice.visible_keys * 11;
  const bool small = choice.visible_keys < 448 || (wasteful && choice.visible_keys < 1024);
  return small ? ForwardShape::kHd64Narrow : ForwardShape::kHd64Long;
}

constexpr ForwardShape choose_hd128(const ForwardChoice& choice) {
  if (choice.gathers) return ForwardShape::kHd128;
  if (!choice.masked) {
    const bool wide = loop_cost(choice.visible_keys, 160, 26) < loop_cost(choice.visible_keys, 128, 26);
    return wide ? ForwardShape::kHd128Wide : ForwardShape::kHd128;
  }
  const int enough = choice.ratio > 1 ? 1024 : 4096;
  return choice.visible_keys >= enough ? ForwardShape::kHd128Wide : ForwardShape::kHd128;
}

/// The shape for a problem; kNone if no head dim is wide enough.
constexpr ForwardShape choose_shape(const ForwardChoice& choice) {
  const bool few_rows = choice.rows_per_group <= 64;
  const auto fits = [&](int key_dim, int value_dim) {
    return choice.key_dim <= key_dim && choice.value_dim <= value_dim;
  };
  if (fits(64, 64)) return few_rows ? ForwardShape::kHd64Small : choose_hd64(choice);
  if (fits(96, 96)) return few_rows ? ForwardShape::kHd96Small : ForwardShape::kHd96;
  if (fits(128, 128)) return few_rows ? ForwardShape::kHd128Small : choose_hd128(choice);
  if (fits(192, 192) && few_rows) return ForwardShape::kHd192Small;
  if (fits(192, 128)) return ForwardShape::kHd192x128;
  if (fits(192, 192)) return ForwardShape::kHd192;
  if (fits(256, 256)) return few_rows ? ForwardShape::kHd256Small : ForwardShape::kHd256;
  return ForwardShape::kNone;
}

/// Into how many parts the keys of each tile are cut, so that `places` blocks have about the same to do: whole rounds
/// of all places, each part with a fixed cost of about three blocks, and an eighth of a block for its share of the sum.
constexpr int choose_splits(long long tiles, int key_blocks, long long places) {
  int best = 1;
  long long best_cost = 0;
  for (int splits = 1; splits <= key_blocks && splits <= 64; ++splits) {
    const long long rounds = (tiles * splits + places - 1) / places;
    const long long cost = 8 * rounds * ((key_blocks + splits - 1) / splits + 3) + splits;
    if (splits == 1 || cost < best_cost) best = splits, best_cost = cost;
  }
  return best;
}

}  // namespace ks::fa3
