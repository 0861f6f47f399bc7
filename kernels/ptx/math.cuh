// Arithmetic by single instructions: approximate functions and packed conversions.
#pragma once

#include <cstdint>

namespace ks::ptx {

/// 2^x, relative error about 2^-22; subnormal results are zero.
__device__ __forceinline__ float ex2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

/// log2(x), approximate.
__device__ __forceinline__ float lg2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

/// tanh(x), relative error about 2^-11.
__device__ __forceinline__ float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

/// Two floats to two bfloat16, `low` in the low half.
__device__ __forceinline__ uint32_t cvt_rn_bf16x2(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

/// Two floats to two half-precision numbers, `low` in the low half.
__device__ __forceinline__ uint32_t cvt_rn_f16x2(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

}  // namespace ks::ptx
