// Which query rows a tile holds and where they belong: row = step x ratio + head, step by step of positions.
#pragma once

#include "kernels/attention/parts/mask.cuh"
#include "kernels/attention/parts/schedule.cuh"
#include "kernels/fa3_hopper/forward_params.h"

namespace ks::fa3 {

/// Where a row of a tile belongs.
struct RowPlace {
  bool exists;
  int position;
  int head;
};

/// The position of a row, counted from the tile's first.
__device__ __forceinline__ int step_of(const ForwardParams& params, int row) {
  return static_cast<int>(static_cast<uint32_t>(row) * params.ratio_reciprocal >> 16);
}

__device__ __forceinline__ RowPlace place_of(const ForwardParams& params, const attention::Tile& tile, int row) {
  const int ratio = params.problem.ratio;
  const int step = step_of(params, row);
  const int position = tile.first_position + step;
  return {row < params.order.positions_per_tile * ratio && position < tile.rows, position,
          tile.group * ratio + row - step * ratio};
}

/// Rows of the tile that belong to positions of the member.
__device__ __forceinline__ int existing_rows(const ForwardParams& params, const attention::Tile& tile) {
  return attention::smaller(params.order.positions_per_tile, tile.rows - tile.first_position) * params.problem.ratio;
}

/// The output row and the LSE of a place, in global memory.
__device__ __forceinline__ char* output_of(const ForwardParams& params, const attention::Tile& tile,
                                           const RowPlace& place) {
  const attention::AttentionProblem& problem = params.problem;
  return static_cast<char*>(problem.output) +
         2 * ((problem.rows_packed ? 0 : tile.member * problem.output_batch_stride) +
              int64_t{tile.row_base + place.position} * problem.output_row_stride +
              place.head * problem.output_head_stride);
}
__device__ __forceinline__ float* lse_of(const ForwardParams& params, const attention::Tile& tile,
                                         const RowPlace& place) {
  const attention::AttentionProblem& problem = params.problem;
  return problem.lse + (problem.rows_packed ? 0 : tile.member * problem.lse_batch_stride) +
         int64_t{tile.row_base + place.position} * problem.lse_row_stride + place.head * problem.lse_head_stride;
}

/// What decides the visible keys of a thread's two rows, `first_row` and the one eight below.
__device__ __forceinline__ attention::RowMask row_mask(const ForwardParams& params, const attention::Tile& tile,
                                                       int first_row) {
  const int first = tile.first_position;
  return {{first + step_of(params, first_row), first + step_of(params, first_row + 8)}, tile.rows, tile.keys};
}

}  // namespace ks::fa3
