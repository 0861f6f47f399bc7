// The running softmax of a thread's two rows of a 64-row tile, in base 2, with the scale folded into one fused
// multiply.
//
// A quad of lanes shares two rows (l/4 and l/4 + 8 of its warp's 16); register 4j + 2r + e is column 8j + 2(l%4) + e of
// row r. m is the running maximum of the raw scores, l this lane's part of the running sum.
#pragma once

#include <cmath>

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/warp.cuh"

namespace ks::attention {

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

/// Maximum and sum over the four lanes of a row.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, ptx::shfl_xor(x, 1));
  return fmaxf(x, ptx::shfl_xor(x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += ptx::shfl_xor(x, 1);
  return x + ptx::shfl_xor(x, 2);
}

/// Maximum and sum over the warp, the same in all lanes.
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) x = fmaxf(x, ptx::shfl_xor(x, mask));
  return x;
}
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) x += ptx::shfl_xor(x, mask);
  return x;
}

struct RowSoftmax {
  float m[2] = {-INFINITY, -INFINITY};  ///< running maximum of the raw scores
  float l[2] = {0.0f, 0.0f};
  float alpha[2] = {0.0f, 0.0f};  ///< what earlier sums and outputs are to be multiplied with

  float shift[2] = {0.0f, 0.0f};  ///< the maximum, scaled: what exponents are reduced by

  /// Raises the running maxima by a block of scores. True if one of the two rows has to be rescaled by alpha.
  template <int kRegs>
  __device__ __forceinline__ bool raise(const float (&S)[kRegs], float scale_log2) {
    bool moved = false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top = m[r];
#pragma unroll
      for (int i = 2 * r; i < kRegs; i += 4) top = fmaxf(top, fmaxf(S[i], S[i + 1]));
      top = quad_max(top);
      const float safe = top == -INFINITY ? 0.0f : top;  // a row that has seen no key yet
      alpha[r] = ptx::ex2_approx((m[r] - safe) * scale_log2);
      moved |= alpha[r] != 1.0f;
      m[r] = top;
      shift[r] = safe * scale_log2;
    }
    return moved;
  }

  /// Turns the scores of row r into weights, exp2(scale_log2 * S - shift), and sums them.
  template <int r, int kRegs>
  __device__ __forceinline__ void weigh(float (&S)[kRegs], float scale_log2) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 2 * r; i < kRegs; i += 4) {
      S[i] = ptx::ex2_approx(fmaf(S[i], scale_log2, -shift[r]));
      S[i + 1] = ptx::ex2_approx(fmaf(S[i + 1], scale_log2, -shift[r]));
      sum += S[i] + S[i + 1];
    }
    l[r] = fmaf(l[r], alpha[r], sum);
  }

  /// Both at once. True if some row of the warp has to be rescaled by alpha.
  template <int kRegs>
  __device__ __forceinline__ bool update(float (&S)[kRegs], float scale_log2) {
    const bool moved = raise(S, scale_log2);
    weigh<0>(S, scale_log2);
    weigh<1>(S, scale_log2);
    return ptx::any(moved);
  }
};

/// What remains to be done with a row once its last key is in.
struct RowFinish {
  float factor;  ///< multiplies O
  float lse;     ///< natural logarithm
};

/// Closes a row: `total` is its sum over all lanes, `m` its maximum; a sink adds one column without a value.
__device__ __forceinline__ RowFinish finish_row(float m, float total, float scale_log2) {
  if (m == -INFINITY) return {0.0f, -INFINITY};
  return {1.0f / total, (m * scale_log2 + ptx::lg2_approx(total)) * kLn2};
}
__device__ __forceinline__ RowFinish finish_row_with_sink(float m, float total, float scale_log2, float sink) {
  const float sink_log2 = sink * kLog2E;
  const float top = fmaxf(m * scale_log2, sink_log2);
  const float shrink = ptx::ex2_approx(m * scale_log2 - top);
  const float denominator = fmaf(total, shrink, ptx::ex2_approx(sink_log2 - top));
  return {shrink / denominator, (top + ptx::lg2_approx(denominator)) * kLn2};
}

}  // namespace ks::attention
