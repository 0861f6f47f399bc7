// The definition behind launch.cuh; included by the files in instances/ alone.
#pragma once

#include "kernels/fa3_hopper/fp8/fp8.cuh"
#include "kernels/fa3_hopper/fp8/launch.cuh"

namespace ks::fa3::fp8 {

template <Fp8Shape kShape>
cudaError_t launch_fp8(const Fp8Params& params, int blocks, cudaStream_t stream) {
  constexpr Fp8Config kC = kFp8Shapes[static_cast<int>(kShape)];
  constexpr size_t kBytes = sizeof(Smem<kC>);
  const auto kernel = attention_fp8_sm90<kShape>;
  if (blocks == 0) return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  kernel<<<blocks, kC.threads(), kBytes, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace ks::fa3::fp8
