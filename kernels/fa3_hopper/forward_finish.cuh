// The end of a tile in the forward kernel: O and LSE leave.
#pragma once

#include "kernels/fa3_hopper/forward_attend.cuh"
#include "kernels/ptx/ldst.cuh"

namespace ks::fa3 {

/// The factor of O and the LSE of the row lane / 4 + 8 r of this warp.
template <ForwardConfig kC>
__device__ __forceinline__ attention::RowFinish Attender<kC>::finish_row(const Tile& tile, int r) const {
  const float total = attention::quad_sum(softmax.l[r]);
  if (params.problem.sinks == nullptr) return attention::finish_row(softmax.m[r], total, params.scale_log2);
  const RowPlace place = place_of(params, tile, warp_row + lane / 4 + 8 * r);
  const float sink = place.exists ? tile::load_float<kC.type>(params.problem.sinks, place.head) : 0.0f;
  return attention::finish_row_with_sink(softmax.m[r], total, params.scale_log2, sink);
}

/// O to shared memory, over the rows of Q that this warp has done with.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::stage_output(uint32_t sO, float factor0, float factor1) const {
#pragma unroll
  for (int j = 0; j < kC.value_dim / 16; ++j) {
    const uint32_t address =
        Plan::OTile::chunk_address(sO, warp_row + lane % 8 + (lane / 8 % 2) * 8, 2 * j + lane / 16);
    ptx::stmatrix_x4(address, tile::pack<kC.type>(O[8 * j] * factor0, O[8 * j + 1] * factor0),
                     tile::pack<kC.type>(O[8 * j + 2] * factor1, O[8 * j + 3] * factor1),
                     tile::pack<kC.type>(O[8 * j + 4] * factor0, O[8 * j + 5] * factor0),
                     tile::pack<kC.type>(O[8 * j + 6] * factor1, O[8 * j + 7] * factor1));
  }
  ptx::fence_proxy_async_shared();  // the copy engine reads these rows, or writes the next Q over them
  ptx::sync_warp();
}

/// Divides by l, moves O through this warp's own rows of Q's memory to global memory, and writes LSE; that last, for
/// the fence between waits for every store that is under way.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::finish(const Tile& tile) {
  const attention::RowFinish done[2] = {finish_row(tile, 0), finish_row(tile, 1)};
  const uint32_t sO = ptx::cvta_shared(smem.sQ[q.slot]);
  ptx::bar_sync(barrier_id::kGroup + group, 128);  // all rows of Q are read
  stage_output(sO, done[0].factor, done[1].factor);
  const int end_position = tile.first_position + step_of(params, warp_row) + step_of(params, 16);
  if (params.stores_boxes && (!params.problem.rows_packed || end_position <= tile.rows)) {
    store_boxes(tile, sO);
  } else {
    store_rows(tile, sO);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const RowPlace place = place_of(params, tile, warp_row + lane / 4 + 8 * r);
    if (place.exists && lane % 4 == 0) *lse_of(params, tile, place) = done[r].lse;
  }
  q.advance();
  holds_query = true;
  if constexpr (kC.query_slots == 1) release_held_query();
}

/// This warp's 16 rows, whole positions of the group's heads, leave as one box a slab; what lies past a dense member's
/// last row lies outside the map.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::store_boxes(const Tile& tile, uint32_t sO) {
  if (!ptx::elect_one()) return;
  const int row = tile.row_base + tile.first_position + step_of(params, warp_row);
#pragma unroll
  for (int slab = 0; slab < Plan::OTile::kSlabs; ++slab) {
    ptx::cp_async_bulk_tensor_4d_store(&params.output_map, sO + slab * Plan::OTile::kSlabBytes + warp_row * 128,
                                       slab * 64, tile.group * params.problem.ratio, row,
                                       params.problem.rows_packed ? 0 : tile.member);
  }
  ptx::cp_async_bulk_commit_group();
}

/// The same by ordinary stores, row by row, for rows that are no box.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::store_rows(const Tile& tile, uint32_t sO) {
  constexpr int kChunks = kC.value_dim / 8;
  for (int i = lane; i < 16 * kChunks; i += 32) {
    const int chunk = i % kChunks;
    const RowPlace place = place_of(params, tile, warp_row + i / kChunks);
    if (place.exists && chunk * 8 < params.problem.value_dim) {
      ptx::st_global_v4(output_of(params, tile, place) + 16 * chunk,
                        ptx::ld_shared_v4(Plan::OTile::chunk_address(sO, warp_row + i / kChunks, chunk)));
    }
  }
  ptx::fence_proxy_async_shared();
  ptx::sync_warp();
}

/// A tile none of whose rows sees a key: O = 0, LSE = -inf or the sink.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::store_rows_without_keys(const Tile& tile) {
  const attention::AttentionProblem& problem = params.problem;
  for (int row = warp_row; row < warp_row + 16; ++row) {
    const RowPlace place = place_of(params, tile, row);
    if (!place.exists) continue;
    for (int chunk = lane; chunk * 8 < problem.value_dim; chunk += 32) {
      ptx::st_global_v4(output_of(params, tile, place) + 16 * chunk, uint4{0, 0, 0, 0});
    }
    if (lane == 0) {
      *lse_of(params, tile, place) =
          problem.sinks != nullptr ? tile::load_float<kC.type>(problem.sinks, place.head) : -INFINITY;
    }
  }
}

}  // namespace ks::fa3
