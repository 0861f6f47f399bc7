// The definition behind launch.cuh; included by the files in instances/ alone.
#pragma once

#include "kernels/fa3_hopper/forward.cuh"
#include "kernels/fa3_hopper/launch.cuh"

namespace ks::fa3 {

template <ForwardShape kShape, Element kType, bool kSoftcap>
cudaError_t launch_forward(const ForwardParams& params, int blocks, cudaStream_t stream) {
  constexpr ForwardConfig kC = config_of(kShape, kType, kSoftcap);
  const auto kernel = attention_forward_sm90<kShape, kType, kSoftcap>;
  if (blocks == 0) return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Smem<kC>));
  kernel<<<blocks, kC.threads(), sizeof(Smem<kC>), stream>>>(params);
  return cudaGetLastError();
}

}  // namespace ks::fa3
