// The load warp of the e4m3 kernel, and the warps that transpose V. See fp8.cuh.
#pragma once

#include "kernels/fa3_hopper/fp8/fp8_smem.cuh"
#include "kernels/fa3_hopper/fp8/turn_values.cuh"
#include "kernels/ptx/fence.cuh"
#include "kernels/ptx/tma.cuh"

namespace ks::fa3::fp8 {

/// Where keys that one box brings lie.
struct BoxPlace {
  int row;
  int page;  ///< or member
};

template <Fp8Config kC>
struct Loader {
  using Plan = Smem<kC>;
  const Fp8Params& params;
  Plan& smem;
  RingPosition<1> q;
  RingPosition<kC.key_stages> k;
  RingPosition<kC.raw_stages> raw;
  RingPosition<2> tiles;

  __device__ __forceinline__ void publish(const Tile& tile) {
    smem.tiles.wait_empty(tiles);
    if (ptx::lane_index() == 0) {
      smem.tile[tiles.slot] = tile;
      ptx::mbarrier_arrive(smem.tiles.full(tiles.slot));
    }
    ptx::sync_warp();
    tiles.advance();
  }

  __device__ __forceinline__ void load_query(const Tile& tile) {
    smem.q.wait_empty(q);
    if (ptx::elect_one()) {
      const uint32_t barrier = smem.q.full(0);
      ptx::mbarrier_arrive_expect_tx(barrier, params.query_bytes);
      for (int slab = 0; slab < Plan::QTile::kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(ptx::cvta_shared(smem.sQ) + slab * Plan::QTile::kSlabBytes, &params.query_map,
                                          slab * 128, tile.group * params.problem.ratio,
                                          tile.row_base + tile.first_position,
                                          params.problem.rows_packed ? 0 : tile.member, barrier, ptx::kEvictFirst);
      }
    }
    ptx::sync_warp();
    q.advance();
  }

  /// The place of this lane's box of a block; any place for lanes without one.
  __device__ __forceinline__ BoxPlace place_in(const Tile& tile, int first_key) const {
    const attention::AttentionProblem& problem = params.problem;
    const int key = first_key + ptx::lane_index() * params.granule;
    if (problem.key_layout != KeyLayout::kPaged) {
      return {tile.key_base + key, problem.key_layout == KeyLayout::kPacked ? 0 : tile.member};
    }
    if (first_key < 0 || key >= tile.keys) return {0, 0};
    const int entry = key / problem.page_size;
    const int32_t* table = problem.page_table + int64_t{tile.member} * problem.page_table_stride;
    return {key - entry * problem.page_size, ptx::ld_global_nc(table + entry)};
  }

  /// Brings a block of keys or values into a slot, a box a run of keys. Runs past the member's last key stay as they
  /// are.
  __device__ __forceinline__ void load_block(const CUtensorMap* map, const Tile& tile, int first_key, BoxPlace own,
                                             uint32_t slot, uint32_t barrier) const {
    int boxes = 1;
    if (params.problem.key_layout == KeyLayout::kPaged) {
      boxes = attention::smaller(kC.block_keys, tile.keys - first_key + params.granule - 1) / params.granule;
    }
    const int box_bytes = params.granule * 128;
    if (ptx::elect_one()) ptx::mbarrier_arrive_expect_tx(barrier, boxes * box_bytes * Plan::KTile::kSlabs);
    for (int i = 0; i < boxes; ++i) {
      const int row = ptx::shfl(own.row, i);
      const int page = ptx::shfl(own.page, i);
      if (!ptx::elect_one()) continue;
#pragma unroll
      for (int slab = 0; slab < Plan::KTile::kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(slot + slab * Plan::KTile::kSlabBytes + i * box_bytes, map, slab * 128, row,
                                          tile.kv_head, page, barrier, params.key_policy);
      }
    }
    ptx::sync_warp();
  }

  /// All blocks of a tile, last first; pages are looked up a block ahead.
  __device__ __forceinline__ void load_tile(const Tile& tile, const BlockPlan& plan) {
    int first_key = plan.origin + (plan.end - 1) * kC.block_keys;
    BoxPlace current = place_in(tile, first_key);
#pragma unroll 1
    for (int block = plan.end - 1; block >= plan.begin; --block) {
      const BoxPlace next = place_in(tile, first_key - kC.block_keys);
      smem.k.wait_empty(k);
      load_block(&params.key_map, tile, first_key, current, ptx::cvta_shared(smem.sK[k.slot]), smem.k.full(k.slot));
      k.advance();
      if (block == plan.end - 1) load_query(tile);
      smem.raw.wait_empty(raw);
      load_block(&params.value_map, tile, first_key, current, ptx::cvta_shared(smem.sRaw[raw.slot]),
                 smem.raw.full(raw.slot));
      raw.advance();
      current = next;
      first_key -= kC.block_keys;
    }
  }
};

template <Fp8Config kC>
__device__ __forceinline__ void load_tiles(const Fp8Params& params, Smem<kC>& smem) {
  attention::TileWalk walk(params.problem, params.order);
  Loader<kC> loader{params, smem};
  int index = ptx::block_index();
#pragma unroll 1
  while (true) {
    const Tile tile = walk.at(index);
    loader.publish(tile);
    if (tile.member < 0) break;
    // The next tile is asked for early: the answer travels while this one is loaded.
    if (ptx::lane_index() == 0) index = attention::take_tile(params.counters);
    loader.load_tile(tile, plan_of<kC>(params, tile));
    index = ptx::shfl(index, 0);
  }
  if (ptx::lane_index() == 0) attention::finish_tiles(params.counters);
}

/// What the warps that transpose V do.
template <Fp8Config kC>
__device__ __forceinline__ void turn_tiles(const Fp8Params& params, Smem<kC>& smem, int warp) {
  using Plan = Smem<kC>;
  RingPosition<kC.raw_stages> raw;
  RingPosition<kC.value_stages> v;
  RingPosition<2> tiles;
#pragma unroll 1
  while (true) {
    const Tile tile = next_tile(smem, tiles);
    if (tile.member < 0) break;
    const BlockPlan plan = plan_of<kC>(params, tile);
#pragma unroll 1
    for (int block = plan.end - 1; block >= plan.begin; --block) {
      smem.raw.wait_full(raw);
      smem.v.wait_empty(v);
      turn_values<typename Plan::KTile, typename Plan::VTile, kC.block_keys, kC.dim>(
          ptx::cvta_shared(smem.sRaw[raw.slot]), ptx::cvta_shared(smem.sV[v.slot]),
          tile.keys - plan.origin - block * kC.block_keys, warp, kTurners, ptx::lane_index());
      ptx::fence_proxy_async_shared();  // the tensor cores read what was written, the copy engine writes what was read
      ptx::sync_warp();
      smem.raw.release(raw);
      if (ptx::lane_index() == 0) ptx::mbarrier_arrive(smem.v.full(v.slot));
      raw.advance();
      v.advance();
    }
  }
}

}  // namespace ks::fa3::fp8
