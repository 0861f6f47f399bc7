// The compiled shapes of the decode kernel and the choice among them: pure, no CUDA, tested on the CPU.
#pragma once

#include <cstddef>

#include "kernels/tile/element.h"

namespace ks::fa3 {

using tile::Element;

/// Everything that is fixed when a decode kernel is compiled.
struct DecodeConfig {
  Element type;   ///< of Q, O and the products
  bool e4m3;      ///< keys and values are e4m3, else they have Q's type
  int dim;        ///< columns of Q, K, V and O
  int row_tiles;  ///< query rows, in eights

  static constexpr int kWarps = 4;                  ///< that compute, 16 keys each at a time
  static constexpr int kBlockKeys = 64;             ///< keys a block
  static constexpr int kBytesUnderWay = 128 << 10;  ///< in the rings of a multiprocessor
  static constexpr int kBlockThreads = 32 * kWarps + 32;

  constexpr int rows() const { return 8 * row_tiles; }
  constexpr int row_bytes() const { return dim * (e4m3 ? 1 : 2); }  ///< of one key
  constexpr int tile_bytes() const { return kBlockKeys * row_bytes(); }
  /// Rows lie in slabs of 128 or 64 bytes, swizzled; rows of 96 or 192 bytes as they are, since the copy engine is slow
  /// with short lines, and ldmatrix meets only two- or fourfold conflicts in these.
  static constexpr int slab_bytes_of(int bytes) { return bytes % 128 == 0 ? 128 : bytes; }
  constexpr int slab_bytes() const { return slab_bytes_of(row_bytes()); }
  constexpr int slabs() const { return row_bytes() / slab_bytes(); }
  constexpr int query_slab_bytes() const { return slab_bytes_of(2 * dim); }
  constexpr int query_slabs() const { return 2 * dim / query_slab_bytes(); }
  constexpr int query_bytes() const { return rows() * 2 * dim; }

  /// Registers a thread: O takes dim * row_tiles / 4, Q as many again where it is kept.
  constexpr int output_registers() const { return dim * row_tiles / 4; }
  constexpr bool holds_query() const { return dim * row_tiles <= 256; }
  /// (Three, measured where they fit: 64 columns or e4m3 20 % slower than two.)
  constexpr int blocks_per_sm() const { return row_tiles > 2 || dim > 192 ? 1 : 2; }
  constexpr size_t merge_bytes() const { return size_t{4} * kWarps * 8 * (dim + 4); }
  /// Slots of the ring of keys and values: what fits, but no more than keeps the memory busy, since everything else
  /// that a block asks for queues behind it.
  constexpr int slots() const {
    const size_t space = size_t{232448} / blocks_per_sm() - 1024 * (blocks_per_sm() - 1) - 3072 -
                         2 * size_t(query_bytes()) - merge_bytes();
    const int fitting = static_cast<int>(space / size_t(tile_bytes()));
    const int enough = kBytesUnderWay / blocks_per_sm() / tile_bytes();
    return fitting < 4 || enough > fitting ? fitting : enough < 4 ? 4 : enough;
  }
  constexpr bool is_valid() const {
    return dim % 32 == 0 && row_tiles >= 1 && slots() >= 4 && tile_bytes() % 1024 == 0;
  }
};

/// Head dimensions that are compiled, and the most eights of rows of each.
inline constexpr int kDecodeDims[] = {64, 96, 128, 256};
inline constexpr int kDecodeDimCount = 4;
inline constexpr int kDecodeTiles[] = {1, 2, 4};
inline constexpr int kDecodeTileCount = 3;

/// Index among kDecodeDims x kDecodeTiles, -1: not compiled for so many columns or rows.
constexpr int decode_shape(int dim, int rows) {
  for (int d = 0; d < kDecodeDimCount; ++d) {
    if (kDecodeDims[d] != dim) continue;
    for (int t = 0; t < kDecodeTileCount; ++t) {
      if (dim == 256 && kDecodeTiles[t] > 2) return -1;
      if (rows <= 8 * kDecodeTiles[t]) return d * kDecodeTileCount + t;
    }
  }
  return -1;
}

constexpr DecodeConfig decode_config(int shape, Element type, bool e4m3) {
  return {type, e4m3, kDecodeDims[shape / kDecodeTileCount], kDecodeTiles[shape % kDecodeTileCount]};
}

}  // namespace ks::fa3
