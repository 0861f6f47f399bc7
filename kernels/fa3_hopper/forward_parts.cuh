// Tiles of few rows whose keys are shared out among blocks: each block leaves its part of O in scratch memory, and the
// last one to arrive sums all parts.
#pragma once

#include "kernels/fa3_hopper/forward_attend.cuh"
#include "kernels/ptx/ldst.cuh"

namespace ks::fa3 {

/// A part of a split tile: O / l and the base-2 LSE of its keys go to scratch memory, in registers' order.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::finish_part(const Tile& tile) {
  const int64_t part = int64_t{tile.number} * params.order.splits + tile.split;
  const int used_rows = params.order.positions_per_tile * params.problem.ratio;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp_row + lane / 4 + 8 * r;
    const float total = attention::quad_sum(softmax.l[r]);
    const float factor = total > 0.0f ? 1.0f / total : 0.0f;
    if (row >= existing_rows(params, tile)) continue;
    const int64_t at = part * used_rows + row;
    if (lane % 4 == 0) {
      params.partial_lse[at] = total > 0.0f ? fmaf(softmax.m[r], params.scale_log2, ptx::lg2_approx(total)) : -INFINITY;
    }
    float* output = params.partial_output + at * kC.value_dim + 2 * (lane % 4);
#pragma unroll
    for (int j = 0; j < kC.value_dim / 8; ++j) {
      ptx::st_global_v2(output + 8 * j, O[4 * j + 2 * r] * factor, O[4 * j + 2 * r + 1] * factor);
    }
  }
  ptx::sync_warp();
  smem.q.release(q);
  q.advance();
}

/// A part without keys: only its LSE says so.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::finish_empty_part(const Tile& tile) {
  const int64_t part = int64_t{tile.number} * params.order.splits + tile.split;
  const int used_rows = params.order.positions_per_tile * params.problem.ratio;
  const int row = ptx::thread_index() % 128;
  if (row < used_rows) params.partial_lse[part * used_rows + row] = -INFINITY;
}

/// The last part of a tile to arrive reads all parts in their order, so that the result does not depend on who was
/// last.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::combine_if_last(const Tile& tile) {
  ptx::fence_device();
  ptx::bar_sync(barrier_id::kGroup + group, 128);
  if (ptx::thread_index() % 128 == 0) {
    const bool last = ptx::atom_add_global(params.arrivals + tile.number, 1) == params.order.splits - 1;
    if (last) ptx::st_global(params.arrivals + tile.number, 0);
    smem.last_part = last;
  }
  ptx::bar_sync(barrier_id::kGroup + group, 128);
  if (!smem.last_part) return;
  ptx::fence_device();
  for (int row = ptx::warp_index() % 4; row < existing_rows(params, tile); row += 4) combine_row(tile, row);
}

/// One warp sums one row over the parts: weights 2^(lse - top), a sink as one more term without a value.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::combine_row(const Tile& tile, int row) {
  const RowPlace place = place_of(params, tile, row);
  const int splits = params.order.splits;
  const int used_rows = params.order.positions_per_tile * params.problem.ratio;
  const int64_t first = int64_t{tile.number} * splits * used_rows + row;
  float sink = -INFINITY;
  if (params.problem.sinks != nullptr) {
    sink = tile::load_float<kC.type>(params.problem.sinks, place.head) * attention::kLog2E;
  }
  // Lane i holds the LSE of parts i and i + 32.
  const float lse0 = lane < splits ? ptx::ld_global_cg(params.partial_lse + first + lane * used_rows) : -INFINITY;
  const float lse1 =
      lane + 32 < splits ? ptx::ld_global_cg(params.partial_lse + first + (lane + 32) * used_rows) : -INFINITY;
  const float top = fmaxf(attention::warp_max(fmaxf(lse0, lse1)), sink);
  const float safe = top == -INFINITY ? 0.0f : top;
  const float weight0 = ptx::ex2_approx(lse0 - safe);
  const float weight1 = ptx::ex2_approx(lse1 - safe);
  const float total = attention::warp_sum(weight0 + weight1) + ptx::ex2_approx(sink - safe);
  constexpr int kQuads = (kC.value_dim + 127) / 128;  // of 128 columns, four a lane
  float sum[kQuads][4] = {};
#pragma unroll 8
  for (int split = 0; split < splits; ++split) {
    const float weight = ptx::shfl(split < 32 ? weight0 : weight1, split % 32);
    const float* part = params.partial_output + (first + int64_t{split} * used_rows) * kC.value_dim;
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      const int column = quad * 128 + lane * 4;
      const float4 value = ptx::ld_global_cg_v4(part + (column < kC.value_dim ? column : 0));
      const bool wrote = weight > 0.0f;  // a part without keys wrote no output; what lies there may be anything
      sum[quad][0] += wrote ? weight * value.x : 0.0f;
      sum[quad][1] += wrote ? weight * value.y : 0.0f;
      sum[quad][2] += wrote ? weight * value.z : 0.0f;
      sum[quad][3] += wrote ? weight * value.w : 0.0f;
    }
  }
  const float factor = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
  for (int quad = 0; quad < kQuads; ++quad) {
    const int column = quad * 128 + lane * 4;
    if (column >= params.problem.value_dim) continue;
    ptx::st_global_v2(output_of(params, tile, place) + 2 * column,
                      tile::pack<kC.type>(sum[quad][0] * factor, sum[quad][1] * factor),
                      tile::pack<kC.type>(sum[quad][2] * factor, sum[quad][3] * factor));
  }
  if (lane == 0) {
    *lse_of(params, tile, place) = top == -INFINITY ? -INFINITY : (top + ptx::lg2_approx(total)) * attention::kLn2;
  }
}

}  // namespace ks::fa3
