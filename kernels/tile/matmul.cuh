// Products of a warpgroup's 64 rows, whole reductions at a time, for either 16-bit type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/ptx/math.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/tile/element.h"

namespace ks::tile {

/// D (+)= A B with both operands in shared memory; B's reduced dimension is contiguous.
template <Element kType, int kRegs>
__device__ __forceinline__ void matmul_shared(float (&d)[kRegs], uint64_t a, uint64_t b, int accumulate) {
  if constexpr (kType == Element::kBf16) ptx::wgmma_m64k16_bf16_ss<0>(d, a, b, accumulate);
  if constexpr (kType == Element::kF16) ptx::wgmma_m64k16_f16_ss<0>(d, a, b, accumulate);
}

/// D (+)= A B with both operands in shared memory; B's columns are contiguous.
template <Element kType, int kRegs>
__device__ __forceinline__ void matmul_shared_columns(float (&d)[kRegs], uint64_t a, uint64_t b, int accumulate) {
  if constexpr (kType == Element::kBf16) ptx::wgmma_m64k16_bf16_ss<1>(d, a, b, accumulate);
  if constexpr (kType == Element::kF16) ptx::wgmma_m64k16_f16_ss<1>(d, a, b, accumulate);
}

/// D (+)= A B with A in registers; B's columns are contiguous.
template <Element kType, int kRegs>
__device__ __forceinline__ void matmul_registers(float (&d)[kRegs], const uint32_t (&a)[4], uint64_t b,
                                                 int accumulate) {
  if constexpr (kType == Element::kBf16) ptx::wgmma_m64k16_bf16_rs<1>(d, a, b, accumulate);
  if constexpr (kType == Element::kF16) ptx::wgmma_m64k16_f16_rs<1>(d, a, b, accumulate);
}

/// Two floats as two elements of kType, `low` in the low half.
template <Element kType>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  if constexpr (kType == Element::kBf16) return ptx::cvt_rn_bf16x2(low, high);
  return ptx::cvt_rn_f16x2(low, high);
}

/// Element `index` of an array of kType in global memory.
template <Element kType>
__device__ __forceinline__ float load_float(const void* array, int index) {
  if constexpr (kType == Element::kBf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(array)[index]);
  return __half2float(static_cast<const __half*>(array)[index]);
}

/// Keeps every use of the array below the wait that stands above this call.
template <typename Value, int kCount>
__device__ __forceinline__ void pin(Value (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) ptx::pin_register(values[i]);
}

}  // namespace ks::tile
