// What the warps of a decode block share: the ring of keys and values, pieces of work with their queries, the buffer in
// which warps merge, and where a key's bytes lie in a slot.
#pragma once

#include "kernels/fa3_hopper/decode/decode_configs.h"
#include "kernels/fa3_hopper/decode/decode_params.h"
#include "kernels/fa3_hopper/decode/partition.h"
#include "kernels/tile/ring.cuh"

namespace ks::fa3 {

/// What a worker does of one tile.
struct DecodePiece {
  int member;  ///< -1: no more
  int kv_head;
  int rows;  ///< query positions of the member
  int row_base;
  int keys;
  int key_base;
  int leftpad;
  DecodeBlocks blocks;
  int first_block;  ///< of this part
  int end_block;
  int tile_unit;   ///< first unit of the tile
  int tile_units;  ///< of the tile
  DecodeShares shares;
};

/// Where a chunk of `granule` keys lies in the cache.
struct ChunkPlace {
  int page;
  int row;
};

template <DecodeConfig kC>
struct alignas(1024) DecodeSmem {
  unsigned char sKV[kC.slots()][kC.tile_bytes()];  ///< keys and values of a block in turns
  unsigned char sQ[2][kC.query_bytes()];
  float merge[DecodeConfig::kWarps][8][kC.dim + 4];  ///< eight rows of every warp; four columns more against conflicts
  float maximum[DecodeConfig::kWarps][kC.rows()];
  float sum[DecodeConfig::kWarps][kC.rows()];
  tile::Ring<kC.slots()> kv;
  tile::Ring<2> pieces;
  DecodePiece piece[2];
  ChunkPlace places[64];  ///< of the chunks that the load warp brings next
  int is_last;            ///< whether this block's part of a shared tile was the last
};

/// The place of an unswizzled byte offset in a tile whose slabs are `slab_bytes` wide; the tile starts at a multiple of
/// 1024 bytes. In slabs of 128 or 64 bytes the copy engine exchanges 16-byte chunks by the address bits above them.
__device__ __forceinline__ uint32_t swizzled(uint32_t offset, int slab_bytes) {
  if (slab_bytes != 128 && slab_bytes != 64) return offset;
  return offset ^ (((offset >> 7) & (slab_bytes / 16 - 1)) << 4);
}

}  // namespace ks::fa3
