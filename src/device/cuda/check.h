// KS_CUDA(call): every CUDA call's status becomes a ks::Error with the call's text, file and line.
#pragma once

#include <cuda_runtime.h>

#include "base/error.h"

namespace ks::device {

inline void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw Error("{}:{}: {} failed: {}", file, line, call, cudaGetErrorString(status));
}

}  // namespace ks::device

#define KS_CUDA(call) ::ks::device::check_cuda((call), #call, __FILE__, __LINE__)
