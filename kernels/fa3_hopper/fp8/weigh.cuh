// The running softmax for e4m3 weights, and how they become a fragment of the next product.
//
// Weights are at most 1; multiplied by 2^8 they use the range of e4m3 (up to 448) from its top. The sum l carries the
// same factor, so that O / l is right as it is; only LSE has to take it off.
#pragma once

#include "kernels/attention/parts/chained_softmax.cuh"
#include "kernels/ptx/math.cuh"

namespace ks::fa3::fp8 {

inline constexpr int kWeightBits = 8;

using WeightSoftmax = attention::ChainedSoftmax<kWeightBits>;

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
