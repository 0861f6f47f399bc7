// The definition behind decode_launch.cuh; included by the files in instances/ alone.
#pragma once

#include "kernels/fa3_hopper/decode/decode.cuh"
#include "kernels/fa3_hopper/decode/decode_launch.cuh"

namespace ks::fa3 {

template <int kShape, Element kType, bool kE4m3>
cudaError_t launch_decode(const DecodeParams& params, int blocks, cudaStream_t stream) {
  constexpr DecodeConfig kC = decode_config(kShape, kType, kE4m3);
  const auto kernel = attention_decode_sm90<kShape, kType, kE4m3>;
  constexpr int kBytes = sizeof(DecodeSmem<kC>);
  if (blocks == 0) return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  kernel<<<blocks, DecodeConfig::kBlockThreads, kBytes, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace ks::fa3
