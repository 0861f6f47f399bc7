// The end of a piece: the warps' results become one, and are written or left for the last part of a shared tile.
#pragma once

#include "kernels/fa3_hopper/decode/decode_attend.cuh"

namespace ks::fa3 {

namespace decode_barrier {
inline constexpr int kMerge = 1;
inline constexpr int kComputeThreads = 32 * DecodeConfig::kWarps;
}  // namespace decode_barrier

template <DecodeConfig kC>
__device__ __forceinline__ void DecodeAttender<kC>::finish(const DecodePiece& piece) {
  using namespace decode_barrier;
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    ptx::bar_sync(kMerge, kComputeThreads);  // what was merged before is read
    store_merge(half);
    ptx::bar_sync(kMerge, kComputeThreads);
    finish_rows(piece, half);
  }
  smem_.pieces.release(pieces_);
  pieces_.advance();
  if (parts_ > 1) combine_if_last(piece);
}

/// (5) This warp's eight rows, column by column as the other warps will read them.
template <DecodeConfig kC>
__device__ __forceinline__ void DecodeAttender<kC>::store_merge(int half) {
  const float total = attention::quad_sum(l_[half]);
  if (quad_ == 0) {
    smem_.maximum[warp_][8 * half + lane_ / 4] = m_[half];
    smem_.sum[warp_][8 * half + lane_ / 4] = total;
  }
  float* even_row = smem_.merge[warp_][2 * quad_];
  float* odd_row = smem_.merge[warp_][2 * quad_ + 1];
#pragma unroll
  for (int tile = 0; tile < kSteps; ++tile) {
    // Expanded values come as even columns, then odd ones.
    const int column = 16 * tile + (kC.e4m3 ? lane_ / 4 * 2 : lane_ / 4);
    const int other = column + (kC.e4m3 ? 1 : 8);
    even_row[column] = O_[tile][half][0];
    odd_row[column] = O_[tile][half][1];
    even_row[other] = O_[tile][half][2];
    odd_row[other] = O_[tile][half][3];
  }
}

/// Sums eight rows over the warps, four columns a thread: a whole tile's rows are finished, others left in scratch.
template <DecodeConfig kC>
__device__ __forceinline__ void DecodeAttender<kC>::finish_rows(const DecodePiece& piece, int half) {
  constexpr int kQuads = kC.dim / 4;
  const int existing = attention::smaller(piece.rows * params_.problem.ratio - 8 * half, 8);
  for (int item = ptx::thread_index(); item < existing * kQuads; item += decode_barrier::kComputeThreads) {
    const int in_half = item / kQuads;
    const int row = 8 * half + in_half;
    const int column = item % kQuads * 4;
    float top = smem_.maximum[0][row];
#pragma unroll
    for (int warp = 1; warp < Config::kWarps; ++warp) top = fmaxf(top, smem_.maximum[warp][row]);
    const float safe = top == -INFINITY ? 0.0f : top;
    float total = 0.0f;
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int warp = 0; warp < Config::kWarps; ++warp) {
      const float weight = ptx::ex2_approx((smem_.maximum[warp][row] - safe) * params_.scale_log2);
      const float4 part = *reinterpret_cast<const float4*>(&smem_.merge[warp][in_half][column]);
      total = fmaf(weight, smem_.sum[warp][row], total);
      sum.x = fmaf(weight, part.x, sum.x);
      sum.y = fmaf(weight, part.y, sum.y);
      sum.z = fmaf(weight, part.z, sum.z);
      sum.w = fmaf(weight, part.w, sum.w);
    }
    total *= power_of_two(-kLift);
    float factor = kC.e4m3 ? value_factor_ : 1.0f;
    if (parts_ > 1) {
      const int block = ptx::block_index();
      const int64_t at = int64_t{2 * block + (block / params_.team == first_worker_)} * kC.rows() + row;
      ptx::st_global_v4(params_.partial_output + at * kC.dim + column,
                        float4{sum.x * factor, sum.y * factor, sum.z * factor, sum.w * factor});
      if (column == 0) ptx::st_global_v2(params_.partial_stats + 2 * at, top * params_.scale_log2, total);
      continue;
    }
    const attention::RowFinish done =
        params_.problem.sinks != nullptr
            ? attention::finish_row_with_sink(top, total, params_.scale_log2, sink_of(piece, row))
            : attention::finish_row(top, total, params_.scale_log2);
    factor *= done.factor;
    ptx::st_global_v2(output_of(piece, row) + 2 * column, tile::pack<kC.type>(sum.x * factor, sum.y * factor),
                      tile::pack<kC.type>(sum.z * factor, sum.w * factor));
    if (column == 0) *lse_of(piece, row) = done.lse;
  }
}

/// (6) One thread's fence and count stand for the whole block: the barrier before it has ordered the others' stores.
template <DecodeConfig kC>
__device__ __forceinline__ void DecodeAttender<kC>::combine_if_last(const DecodePiece& piece) {
  using namespace decode_barrier;
  ptx::bar_sync(kMerge, kComputeThreads);
  if (ptx::thread_index() == 0) {
    int32_t* counter = params_.arrivals + first_worker_ * params_.team + ptx::block_index() % params_.team;
    ptx::fence_device();
    const bool last = ptx::atom_add_global(counter, 1) == parts_ - 1;
    if (last) {
      ptx::st_global(counter, 0);
      ptx::fence_device();
    }
    smem_.is_last = last;
  }
  ptx::bar_sync(kMerge, kComputeThreads);
  if (!smem_.is_last) return;
  // Few parts leave room to read several rows' parts at once.
  const int rows = piece.rows * params_.problem.ratio;
  if (parts_ <= 4) {
    for (int row = warp_; row < rows; row += 4 * Config::kWarps) combine_rows<4>(piece, row, rows);
  } else {
    for (int row = warp_; row < rows; row += Config::kWarps) combine_rows<1>(piece, row, rows);
  }
}

/// The sum of one row over parts, four columns a lane and 128 a quad: weights are 2^(m - top).
template <int kQuads>
struct PartSum {
  float top = -INFINITY;
  float total = 0.0f;
  float weight;  ///< of the part that this lane holds, of 32
  float sum[kQuads][4] = {};

  /// Takes up to 32 parts in, one a lane: their maxima in base 2 and sums.
  __device__ __forceinline__ void weigh(float2 own) {
    const float before = top;
    top = fmaxf(top, attention::warp_max(own.x));
    const float safe = top == -INFINITY ? 0.0f : top;
    weight = ptx::ex2_approx(own.x - safe);
    const float shrink = ptx::ex2_approx(before - safe);
    total = fmaf(total, shrink, attention::warp_sum(weight * own.y));
#pragma unroll
    for (int i = 0; i < 4 * kQuads; ++i) sum[i / 4][i % 4] *= shrink;
  }
  /// Adds the output of the part that `lane` holds.
  __device__ __forceinline__ void add(int lane, const float4 (&value)[kQuads]) {
    const float of_part = ptx::shfl(weight, lane);
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      sum[quad][0] = fmaf(of_part, value[quad].x, sum[quad][0]);
      sum[quad][1] = fmaf(of_part, value[quad].y, sum[quad][1]);
      sum[quad][2] = fmaf(of_part, value[quad].z, sum[quad][2]);
      sum[quad][3] = fmaf(of_part, value[quad].w, sum[quad][3]);
    }
  }
};

/// One warp sums rows `first_row`, + kWarps, ... (kRows of them, below `end_row`) over the parts, 32 at a time. Many
/// reads travel together: past the last row the last again, past the last part the last again with weight 0.
template <DecodeConfig kC>
template <int kRows>
__device__ __forceinline__ void DecodeAttender<kC>::combine_rows(const DecodePiece& piece, int first_row, int end_row) {
  constexpr int kQuads = kColumnQuads;
  constexpr int kAtOnce = 16 / kQuads / kRows;  // parts whose reads travel together
  const int first_block = first_worker_ * params_.team + ptx::block_index() % params_.team;
  PartSum<kQuads> sums[kRows];
#pragma unroll 1
  for (int first = 0; first < parts_; first += 32) {
    const int count = attention::smaller(parts_ - first, 32);
    const auto place = [&](int part, int r) {
      const int row = attention::smaller(first_row + r * Config::kWarps, end_row - 1);
      return int64_t{2 * (first_block + (first + part) * params_.team) + (first + part == 0)} * kC.rows() + row;
    };
    float2 own[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      own[r] = {-INFINITY, 0.0f};
      if (lane_ < count) own[r] = ptx::ld_global_cg_v2(params_.partial_stats + 2 * place(lane_, r));
    }
#pragma unroll 1
    for (int begin = 0; begin < count; begin += kAtOnce) {
      float4 value[kRows][kAtOnce][kQuads];
#pragma unroll
      for (int i = 0; i < kAtOnce * kRows; ++i) {
        const int part = attention::smaller(begin + i / kRows, count - 1);
        read_part(params_.partial_output + place(part, i % kRows) * kC.dim, value[i % kRows][i / kRows]);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (begin == 0) sums[r].weigh(own[r]);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) sums[r].add((begin + i) % 32, value[r][i]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_row + r * Config::kWarps;
    if (row < end_row) store_combined(piece, row, sums[r].top, sums[r].total, sums[r].sum);
  }
}

/// This lane's columns of one row of a part.
template <DecodeConfig kC>
__device__ __forceinline__ void DecodeAttender<kC>::read_part(const float* row, float4 (&value)[kColumnQuads]) const {
#pragma unroll
  for (int quad = 0; quad < kColumnQuads; ++quad) {
    const int column = quad * 128 + lane_ * 4;
    value[quad] = ptx::ld_global_cg_v4(row + (column < kC.dim ? column : 0));
  }
}

/// Closes a row that all parts are summed in, four columns a lane.
template <DecodeConfig kC>
template <int kQuads>
__device__ __forceinline__ void DecodeAttender<kC>::store_combined(const DecodePiece& piece, int row, float top,
                                                                   float total, const float (&sum)[kQuads][4]) {
  const bool has_sink = params_.problem.sinks != nullptr;
  const float sink = has_sink ? sink_of(piece, row) * attention::kLog2E : -INFINITY;
  const float highest = fmaxf(top, sink);
  const float safe = highest == -INFINITY ? 0.0f : highest;
  const float shrink = ptx::ex2_approx(top - safe);
  total = fmaf(total, shrink, ptx::ex2_approx(sink - safe));
  const float factor = total > 0.0f ? shrink / total : 0.0f;
#pragma unroll
  for (int quad = 0; quad < kQuads; ++quad) {
    const int column = quad * 128 + lane_ * 4;
    if (column >= kC.dim) continue;
    ptx::st_global_v2(output_of(piece, row) + 2 * column,
                      tile::pack<kC.type>(sum[quad][0] * factor, sum[quad][1] * factor),
                      tile::pack<kC.type>(sum[quad][2] * factor, sum[quad][3] * factor));
  }
  if (lane_ == 0) {
    *lse_of(piece, row) = highest == -INFINITY ? -INFINITY : (highest + ptx::lg2_approx(total)) * attention::kLn2;
  }
}

template <DecodeConfig kC>
__device__ __forceinline__ float DecodeAttender<kC>::sink_of(const DecodePiece& piece, int row) const {
  const int ratio = params_.problem.ratio;
  return tile::load_float<kC.type>(params_.problem.sinks, piece.kv_head * ratio + row - position_of(row) * ratio);
}

template <DecodeConfig kC>
__device__ __forceinline__ char* DecodeAttender<kC>::output_of(const DecodePiece& piece, int row) const {
  const attention::AttentionProblem& problem = params_.problem;
  const int position = position_of(row);
  const int head = piece.kv_head * problem.ratio + row - position * problem.ratio;
  return static_cast<char*>(problem.output) +
         2 * ((problem.rows_packed ? 0 : piece.member * problem.output_batch_stride) +
              int64_t{piece.row_base + position} * problem.output_row_stride + head * problem.output_head_stride);
}

template <DecodeConfig kC>
__device__ __forceinline__ float* DecodeAttender<kC>::lse_of(const DecodePiece& piece, int row) const {
  const attention::AttentionProblem& problem = params_.problem;
  const int position = position_of(row);
  const int head = piece.kv_head * problem.ratio + row - position * problem.ratio;
  return problem.lse + (problem.rows_packed ? 0 : piece.member * problem.lse_batch_stride) +
         int64_t{piece.row_base + position} * problem.lse_row_stride + head * problem.lse_head_stride;
}

}  // namespace ks::fa3
