// The load warp of the forward kernel: takes tiles, says what is to be done for each, and brings Q, K and V by the copy
// engine. Where keys are gathered (gather.cuh), the other three warps of its group help.
#pragma once

#include <type_traits>

#include "kernels/fa3_hopper/forward_smem.cuh"
#include "kernels/fa3_hopper/gather.cuh"
#include "kernels/ptx/tma.cuh"

namespace ks::fa3 {

/// Whether keys are gathered; false at compile time for shapes that cannot.
template <ForwardConfig kC>
__device__ __forceinline__ bool gathers(const ForwardParams& params) {
  return kC.may_gather() && params.gathers;
}

/// The key blocks of a tile, or of its part.
template <ForwardConfig kC>
__device__ __forceinline__ BlockPlan plan_of(const ForwardParams& params, const Tile& tile) {
  const int last = attention::smaller(tile.first_position + params.order.positions_per_tile, tile.rows) - 1;
  const BlockPlan plan =
      attention::plan_blocks(tile.first_position, last, tile.rows, tile.keys, params.problem.window_left,
                             params.problem.window_right, kC.block_keys, params.origin_step);
  if (!kC.may_split() || params.order.splits == 1) return plan;
  return attention::part_of(plan, tile.split, params.order.splits);
}

/// Brings `block_keys` keys from first_key on into a slot, one box or a box a page chunk. Chunks past the member's last
/// key stay as they are: their scores are masked, their values zeroed before use.
template <ForwardConfig kC, int kSlabs, int kSlabBytes>
__device__ __forceinline__ void load_block(const ForwardParams& params, const CUtensorMap* map, const Tile& tile,
                                           int first_key, PagePlace own, uint32_t slot, uint32_t barrier) {
  const attention::AttentionProblem& problem = params.problem;
  if (problem.key_layout != KeyLayout::kPaged) {
    if (ptx::elect_one()) {
      ptx::mbarrier_arrive_expect_tx(barrier, kSlabs * kSlabBytes);
      const int member = problem.key_layout == KeyLayout::kPacked ? 0 : tile.member;
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(slot + slab * kSlabBytes, map, slab * 64, tile.key_base + first_key,
                                          tile.kv_head, member, barrier, params.key_policy);
      }
    }
    return;
  }
  const int wanted = (ptx::shfl(tile.keys, 0) - first_key + params.granule - 1) / params.granule;
  const int chunks = attention::smaller(kC.block_keys / params.granule, wanted);
  const int chunk_bytes = params.granule * 128;
  if (ptx::elect_one()) ptx::mbarrier_arrive_expect_tx(barrier, chunks * chunk_bytes * kSlabs);
  for (int base = 0; base < chunks; base += 32) {
    if (base > 0) own = find_place(params, tile, first_key + (base + ptx::lane_index()) * params.granule);
    const int here = attention::smaller(chunks - base, 32);
#pragma unroll 4
    for (int i = 0; i < here; ++i) {
      const int page = ptx::shfl(own.page, i);
      const int row = ptx::shfl(own.row, i);
      if (ptx::elect_one()) {
#pragma unroll
        for (int slab = 0; slab < kSlabs; ++slab) {
          ptx::cp_async_bulk_tensor_4d_load(slot + slab * kSlabBytes + (base + i) * chunk_bytes, map, slab * 64, row,
                                            tile.kv_head, page, barrier, params.key_policy);
        }
      }
    }
  }
}

template <ForwardConfig kC>
struct Loader {
  using Plan = Smem<kC>;
  const ForwardParams& params;
  Plan& smem;
  const int warp;  ///< 0 but for the helpers of a gather
  RingPosition<kC.query_slots> q;
  RingPosition<kC.stages> k;
  RingPosition<kC.stages> v;
  RingPosition<kWorkSlots> works;

  __device__ __forceinline__ const Work& publish(const Tile& tile) {
    smem.works.wait_empty(works);
    Work& work = smem.work[works.slot];
    if (ptx::lane_index() == 0) {
      work.tile = tile;
      if (tile.member >= 0) work.plan = plan_of<kC>(params, tile);
      ptx::mbarrier_arrive(smem.works.full(works.slot));
    }
    ptx::sync_warp();
    works.advance();
    return work;
  }

  __device__ __forceinline__ void load_query(const Tile& tile) {
    smem.q.wait_empty(q);
    if (ptx::elect_one()) {
      const uint32_t barrier = smem.q.full(q.slot);
      const uint32_t slot = ptx::cvta_shared(smem.sQ[q.slot]);
      ptx::mbarrier_arrive_expect_tx(barrier, params.query_bytes);
      const int member = params.problem.rows_packed ? 0 : tile.member;
      for (int slab = 0; slab < Plan::QTile::kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(slot + slab * Plan::QTile::kSlabBytes, &params.query_map, slab * 64,
                                          tile.group * params.problem.ratio, tile.row_base + tile.first_position,
                                          member, barrier, ptx::kEvictFirst);
      }
    }
    ptx::sync_warp();
    q.advance();
  }

  /// The place of this lane's chunk of a block, or of its row of this warp's share where keys are gathered.
  __device__ __forceinline__ PagePlace place_in(const Tile& tile, int first_key) const {
    if (params.problem.key_layout != KeyLayout::kPaged) return {0, 0};
    const int key = gathers<kC>(params) ? warp * (kC.block_keys * 32 / kC.load_threads()) + ptx::lane_index()
                                        : ptx::lane_index() * params.granule;
    return find_place(params, tile, first_key < 0 ? -1 : first_key + key);
  }

  __device__ __forceinline__ void load_keys(const Tile& tile, int first_key, PagePlace own) {
    smem.k.wait_empty(k);
    const uint32_t slot = ptx::cvta_shared(smem.sK[k.slot]);
    if (gathers<kC>(params)) {
      gather_block<typename Plan::KTile, kC.block_keys, kC.key_dim>(params, params.key, params.key_strides, tile,
                                                                    first_key, own, slot, smem.k.full(k.slot), warp,
                                                                    kC.load_threads() / 32);
    } else {
      load_block<kC, Plan::KTile::kSlabs, Plan::KTile::kSlabBytes>(params, &params.key_map, tile, first_key, own, slot,
                                                                   smem.k.full(k.slot));
    }
    ptx::sync_warp();
    k.advance();
  }

  __device__ __forceinline__ void load_values(const Tile& tile, int first_key, PagePlace own) {
    smem.v.wait_empty(v);
    const uint32_t slot = ptx::cvta_shared(smem.sV[v.slot]);
    if (gathers<kC>(params)) {
      gather_block<typename Plan::VTile, kC.block_keys, kC.value_dim>(params, params.value, params.value_strides, tile,
                                                                      first_key, own, slot, smem.v.full(v.slot), warp,
                                                                      kC.load_threads() / 32);
    } else {
      load_block<kC, Plan::VTile::kSlabs, Plan::VTile::kSlabBytes>(params, &params.value_map, tile, first_key, own,
                                                                   slot, smem.v.full(v.slot));
    }
    ptx::sync_warp();
    v.advance();
  }

  /// All blocks of a tile, last first; values come one block behind keys, as they are used. Pages are looked up a block
  /// ahead. Only the first warp brings Q; where Q has one slot, which the tile before still holds, keys and values that
  /// fit in the rings go first.
  __device__ __forceinline__ void load_tile(const Work& work) {
    const Tile& tile = work.tile;
    // Broadcasts, so that the compiler knows these to be the same in all lanes: loops and slots are then uniform.
    const int begin = ptx::shfl(work.plan.begin, 0);
    const int end = ptx::shfl(work.plan.end, 0);
    int first_key = ptx::shfl(work.first_key(end - 1, kC.block_keys), 0);
    if (end <= begin) return;
    const int query_block = attention::larger(begin, end - (kC.query_slots == 1 ? kC.stages : 1));
    PagePlace previous = {0, 0};
    PagePlace current = place_in(tile, first_key);
#pragma unroll 1
    for (int block = end - 1; block >= begin - 1; --block) {
      const PagePlace next = place_in(tile, first_key - kC.block_keys);
      if (block >= begin) load_keys(tile, first_key, current);
      if (block < end - 1) load_values(tile, first_key + kC.block_keys, previous);
      if (block == query_block && warp == 0) load_query(tile);
      previous = current;
      current = next;
      first_key -= kC.block_keys;
    }
  }

  /// The works as the other load warps see them: like the compute warps.
  __device__ __forceinline__ const Work& next_work() {
    smem.works.wait_full(works);
    return smem.work[works.slot];
  }
  __device__ __forceinline__ void let_work_go() {
    ptx::sync_warp();
    smem.works.release(works);
    works.advance();
  }
};

/// A copy of the work, or, where the load warps have handed registers back, the work where it lies.
template <ForwardConfig kC>
using LoadedWork = std::conditional_t<kC.moves_registers(), const Work&, const Work>;

/// The first load warp takes tiles and brings all boxes; where keys are gathered, the others take part in that alone.
template <ForwardConfig kC>
__device__ __forceinline__ void load_tiles(const ForwardParams& params, Smem<kC>& smem, int warp) {
  attention::TileWalk walk(params.problem, params.order);
  if constexpr (!kC.may_gather()) warp = 0;
  Loader<kC> loader{params, smem, warp};
  int index = ptx::block_index();
#pragma unroll 1
  while (true) {
    LoadedWork<kC> work = warp == 0 ? loader.publish(walk.at(index)) : loader.next_work();
    if (ptx::shfl(work.tile.member, 0) < 0) break;
    // The next tile is asked for early: the answer travels while this one is loaded.
    if (warp == 0 && ptx::lane_index() == 0) index = attention::take_tile(params.counters);
    loader.load_tile(work);
    if (warp != 0) loader.let_work_go();
    index = ptx::shfl(index, 0);
  }
  if (warp == 0 && ptx::lane_index() == 0) attention::finish_tiles(params.counters);
}

}  // namespace ks::fa3
