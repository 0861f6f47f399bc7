// Shared memory of the e4m3 kernel, and what all of its roles work out alike. See fp8.cuh.
#pragma once

#include "kernels/attention/parts/schedule.cuh"
#include "kernels/attention/parts/visible_keys.h"
#include "kernels/fa3_hopper/fp8/configs.h"
#include "kernels/fa3_hopper/fp8/params.h"
#include "kernels/tile/ring.cuh"
#include "kernels/tile/smem_tile.cuh"

namespace ks::fa3::fp8 {

using attention::BlockPlan;
using attention::KeyLayout;
using attention::Tile;
using tile::RingPosition;

// 5. Shared memory. Tiles count their columns in 16-bit units.
template <Fp8Config kC>
struct alignas(1024) Smem {
  using QTile = tile::SmemTile<kC.rows(), kC.slab_bytes() / 2>;
  using KTile = tile::SmemTile<kC.block_keys, kC.slab_bytes() / 2>;
  using VTile = tile::SmemTile<kC.dim, kC.value_row_bytes() / 2>;  ///< transposed: a row is a column of V

  unsigned char sQ[QTile::kBytes];
  unsigned char sK[kC.key_stages][KTile::kBytes];
  unsigned char sRaw[kC.raw_stages][KTile::kBytes];
  unsigned char sV[kC.value_stages][VTile::kBytes];
  tile::Ring<1> q;
  tile::Ring<kC.key_stages> k;
  tile::Ring<kC.raw_stages> raw;
  tile::Ring<kC.value_stages> v;
  tile::Ring<2> tiles;
  Tile tile[2];
};

namespace barrier_id {
inline constexpr int kTurn = 1;  // + warpgroup
}  // namespace barrier_id

/// The key blocks of a tile; all roles compute the same.
template <Fp8Config kC>
__device__ __forceinline__ BlockPlan plan_of(const Fp8Params& params, const Tile& tile) {
  const int last = attention::smaller(tile.first_position + params.order.positions_per_tile, tile.rows) - 1;
  return attention::plan_blocks(tile.first_position, last, tile.rows, tile.keys, params.problem.window_left,
                                params.problem.window_right, kC.block_keys, params.origin_step);
}

/// The tile that the load warp published last.
template <Fp8Config kC>
__device__ __forceinline__ Tile next_tile(Smem<kC>& smem, RingPosition<2>& tiles) {
  smem.tiles.wait_full(tiles);
  const Tile tile = smem.tile[tiles.slot];
  ptx::sync_warp();
  smem.tiles.release(tiles);
  tiles.advance();
  return tile;
}

}  // namespace ks::fa3::fp8
