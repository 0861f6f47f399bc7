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

/// Four floats to four e4m3 numbers, the first in the lowest byte; beyond 448 they saturate.
__device__ __forceinline__ uint32_t cvt_rn_e4m3x4(float f0, float f1, float f2, float f3) {
  uint32_t packed;
  asm("{\n.reg .b16 low, high;\ncvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\ncvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n}\n"
      : "=r"(packed)
      : "f"(f0), "f"(f1), "f"(f2), "f"(f3));
  return packed;
}

/// Bytes of a (numbers 0 to 3) and b (4 to 7), picked by the digits of `selector`, lowest first.
__device__ __forceinline__ uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t picked;
  asm("prmt.b32 %0, %1, %2, %3;\n" : "=r"(picked) : "r"(a), "r"(b), "r"(selector));
  return picked;
}

/// Products of two pairs of bfloat16.
__device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
  uint32_t product;
  asm("mul.rn.bf16x2 %0, %1, %2;\n" : "=r"(product) : "r"(a), "r"(b));
  return product;
}

}  // namespace ks::ptx
