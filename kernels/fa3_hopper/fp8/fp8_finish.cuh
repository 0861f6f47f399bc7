// What follows the main loop of the e4m3 kernel: O and LSE. See fp8.cuh.
#pragma once

#include "kernels/fa3_hopper/fp8/fp8_attend.cuh"

namespace ks::fa3::fp8 {

/// The first of the four neighbouring columns of O that a lane holds in registers 8 g .. 8 g + 7 (g sixteens of
/// columns): for either row, register 8 g + 2 r is the first, + 4 the second, + 1 the third, + 5 the fourth
/// (turn_values.cuh).
__device__ __forceinline__ int output_column(int sixteen, int lane) {
  return 16 * sixteen + 4 * (lane % 4);
}

/// Divides by l and writes O and LSE.
template <Fp8Config kC>
__device__ __forceinline__ void Attender<kC>::finish(const Tile& tile) {
  const attention::AttentionProblem& problem = params.problem;
  const float descale = descale_of(tile, params.value_descale);
  constexpr float kUnscaled = 1.0f / (1 << kWeightBits);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const RowPlace place = place_of(tile, warp_row + lane / 4 + 8 * r);
    const float total = attention::quad_sum(softmax.l[r]) * kUnscaled;
    attention::RowFinish done;
    if (problem.sinks != nullptr) {
      const float sink = place.exists ? tile::load_float<tile::Element::kBf16>(problem.sinks, place.head) : 0.0f;
      done = attention::finish_row_with_sink(softmax.m[r], total, scale_log2, sink);
    } else {
      done = attention::finish_row(softmax.m[r], total, scale_log2);
    }
    if (!place.exists) continue;
    if (lane % 4 == 0) *lse_of(tile, place) = done.lse;
    const float factor = done.factor * descale * kUnscaled;
    char* row = output_of(tile, place);
#pragma unroll
    for (int g = 0; g < kC.dim / 16; ++g) {
      const int column = output_column(g, lane);
      if (column >= problem.value_dim) continue;
      const int at = 8 * g + 2 * r;
      ptx::st_global_v2(row + 2 * column, ptx::cvt_rn_bf16x2(O[at] * factor, O[at + 4] * factor),
                        ptx::cvt_rn_bf16x2(O[at + 1] * factor, O[at + 5] * factor));
    }
  }
}

/// A tile none of whose rows sees a key: O = 0, LSE = -inf or the sink.
template <Fp8Config kC>
__device__ __forceinline__ void Attender<kC>::store_rows_without_keys(const Tile& tile) {
  const attention::AttentionProblem& problem = params.problem;
  for (int row = warp_row; row < warp_row + 16; ++row) {
    const RowPlace place = place_of(tile, row);
    if (!place.exists) continue;
    for (int chunk = lane; chunk * 8 < problem.value_dim; chunk += 32) {
      ptx::st_global_v4(output_of(tile, place) + 16 * chunk, uint4{0, 0, 0, 0});
    }
    if (lane == 0) {
      *lse_of(tile, place) =
          problem.sinks != nullptr ? tile::load_float<tile::Element::kBf16>(problem.sinks, place.head) : -INFINITY;
    }
  }
}

}  // namespace ks::fa3::fp8
