// The running softmax of online_softmax.cuh for loops that its latency binds, where few warps share a scheduler.
//
// A maximum or a sum over a row is a chain of dependent instructions, each of which takes about five clocks to answer;
// with two warps a scheduler such chains, one row after the other, were 40 % of a turn. Here both rows and two chains a
// row run side by side, and so do the exchanges within the quad.
#pragma once

#include "kernels/attention/parts/online_softmax.cuh"

namespace ks::attention {

/// kScaleBits: weights, and with them l, are multiplied by 2^kScaleBits, for types that have few bits below 1.
template <int kScaleBits>
struct ChainedSoftmax {
  float m[2] = {-INFINITY, -INFINITY};  ///< running maximum of the raw scores
  float l[2] = {0.0f, 0.0f};            ///< this lane's part of the running sum
  float alpha[2] = {0.0f, 0.0f};        ///< what earlier sums and outputs are to be multiplied with

  /// Takes a block of scores in, and turns S into exp2(scale_log2 * (S - m) + kScaleBits).
  template <int kRegs>
  __device__ __forceinline__ void update(float (&S)[kRegs], float scale_log2) {
    advance(S, scale_log2);
    exponentiate(S, scale_log2);
  }

  /// The first half of it: m and alpha.
  template <int kRegs>
  __device__ __forceinline__ void advance(const float (&S)[kRegs], float scale_log2) {
    float top[2];
    maxima(S, top);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      alpha[r] = ptx::ex2_approx((m[r] - safe(top[r])) * scale_log2);
      m[r] = top[r];
    }
  }

  /// The second: S and l.
  template <int kRegs>
  __device__ __forceinline__ void exponentiate(float (&S)[kRegs], float scale_log2) {
    float shift[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) shift[r] = fmaf(safe(m[r]), scale_log2, -static_cast<float>(kScaleBits));
    float sum[2][2];
#pragma unroll
    for (int j = 0; j < kRegs / 4; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int i = 4 * j + 2 * r;
        S[i] = ptx::ex2_approx(fmaf(S[i], scale_log2, -shift[r]));
        S[i + 1] = ptx::ex2_approx(fmaf(S[i + 1], scale_log2, -shift[r]));
        const float pair = S[i] + S[i + 1];
        sum[r][j % 2] = j < 2 ? pair : sum[r][j % 2] + pair;
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) l[r] = fmaf(l[r], alpha[r], sum[r][0] + sum[r][1]);
  }

  /// Whether some row of the warp has to be rescaled by alpha; otherwise alpha is 1 in all of them.
  __device__ __forceinline__ bool moved() const {
    return ptx::any(alpha[0] != 1.0f || alpha[1] != 1.0f);
  }

 private:
  /// A maximum to subtract, also for a row that has seen no key yet.
  static __device__ __forceinline__ float safe(float top) {
    return top == -INFINITY ? 0.0f : top;
  }

  /// The maxima of both rows, earlier blocks included, the same in all lanes of a quad.
  template <int kRegs>
  __device__ __forceinline__ void maxima(const float (&S)[kRegs], float (&top)[2]) const {
    static_assert(kRegs % 8 == 0);
    float part[2][2];
#pragma unroll
    for (int j = 0; j < kRegs / 4; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float pair = fmaxf(S[4 * j + 2 * r], S[4 * j + 2 * r + 1]);
        part[r][j % 2] = j < 2 ? pair : fmaxf(part[r][j % 2], pair);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) top[r] = fmaxf(fmaxf(part[r][0], part[r][1]), m[r]);
#pragma unroll
    for (int distance = 1; distance <= 2; ++distance) {
      float other[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) other[r] = ptx::shfl_xor(top[r], distance);
#pragma unroll
      for (int r = 0; r < 2; ++r) top[r] = fmaxf(top[r], other[r]);
    }
  }
};

}  // namespace ks::attention
