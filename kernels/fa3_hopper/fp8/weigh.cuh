// The running softmax for e4m3 weights, and how they become a fragment of the next product.
//
// Weights are at most 1; multiplied by 2^8 they use the range of e4m3 (up to 448) from its top. The sum l carries the
// same factor, so that O / l is right as it is; only LSE has to take it off.
#pragma once

#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/ptx/math.cuh"

namespace ks::fa3::fp8 {

inline constexpr float kWeightBits = 8.0f;

struct WeightSoftmax {
  float m[2] = {-INFINITY, -INFINITY};  ///< running maximum of the raw scores
  float l[2] = {0.0f, 0.0f};            ///< this lane's part of the running sum, times 2^8
  float alpha[2] = {0.0f, 0.0f};        ///< what earlier sums and outputs are to be multiplied with

  /// Takes a block of scores in, and turns S into exp2(scale_log2 * (S - m) + 8).
  template <int kRegs>
  __device__ __forceinline__ void update(float (&S)[kRegs], float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top = m[r];
#pragma unroll
      for (int i = 2 * r; i < kRegs; i += 4) top = fmaxf(top, fmaxf(S[i], S[i + 1]));
      top = attention::quad_max(top);
      const float safe = top == -INFINITY ? 0.0f : top;  // a row that has seen no key yet
      alpha[r] = ptx::ex2_approx((m[r] - safe) * scale_log2);
      m[r] = top;
      const float shift = fmaf(safe, scale_log2, -kWeightBits);
      float sum = 0.0f;
#pragma unroll
      for (int i = 2 * r; i < kRegs; i += 4) {
        S[i] = ptx::ex2_approx(fmaf(S[i], scale_log2, -shift));
        S[i + 1] = ptx::ex2_approx(fmaf(S[i + 1], scale_log2, -shift));
        sum += S[i] + S[i + 1];
      }
      l[r] = fmaf(l[r], alpha[r], sum);
    }
  }
};

/// The A fragments of the weights. Bytes 4q .. 4q+3 of a row's 16 (q: the lane's place in its quad) are keys 2q, 2q+1,
/// 2q+8, 2q+9, which is how the accumulators of S lie; V transposed has its keys in the same order.
template <int kSteps, int kRegs>
__device__ __forceinline__ void pack_weights(uint32_t (&P)[kSteps][4], const float (&S)[kRegs]) {
  static_assert(kRegs == 16 * kSteps);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // row + 8 (i % 2), second sixteen keys (i / 2)
      const int at = 16 * step + 8 * (i / 2) + 2 * (i % 2);
      P[step][i] = ptx::cvt_rn_e4m3x4(S[at], S[at + 1], S[at + 4], S[at + 5]);
    }
  }
}

}  // namespace ks::fa3::fp8
