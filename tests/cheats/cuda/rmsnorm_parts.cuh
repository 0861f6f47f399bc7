// What the tricks and controls on RMSNorm share on a GPU: reading and writing elements, and a kernel that does a row a
// block rightly. Defines ks_sizes and ks_plan for those that need no buffers; one that does defines OWN_SIZES (OWN_PLAN) first.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "rmsnorm.h"

namespace {

constexpr int kThreads = 256;

inline const ks_rmsnorm_shape& shape_of(const ks_rmsnorm_call* call) {
  return *static_cast<const ks_rmsnorm_shape*>(call->context.shape);
}

inline cudaStream_t stream_of(const ks_rmsnorm_call* call) {
  return static_cast<cudaStream_t>(call->context.stream);
}

inline unsigned rows_of(const ks_rmsnorm_call* call) {
  return static_cast<unsigned>(shape_of(call).rows);
}

inline ks_status status() {
  return cudaGetLastError() == cudaSuccess ? KS_OK : KS_FAILED;
}

__device__ inline float load(const void* data, int32_t dtype, int64_t index) {
  if (dtype == KS_F32) return static_cast<const float*>(data)[index];
  if (dtype == KS_F16) return __half2float(static_cast<const __half*>(data)[index]);
  return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[index]);
}

__device__ inline void store(void* data, int32_t dtype, int64_t index, float value) {
  if (dtype == KS_F32) static_cast<float*>(data)[index] = value;
  if (dtype == KS_F16) static_cast<__half*>(data)[index] = __float2half(value);
  if (dtype == KS_BF16) static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16(value);
}

/// 1 / sqrt(mean square + epsilon) of a row; the whole block takes part and has the answer.
__device__ inline float scale_of_row(const ks_rmsnorm_shape& shape, const ks_rmsnorm_call& call, int64_t row) {
  __shared__ double partial[kThreads];
  double sum = 0;
  for (int c = threadIdx.x; c < shape.columns; c += kThreads) {
    const double x = load(call.input, shape.dtype, row * shape.input_row_stride + c);
    sum += x * x;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  return static_cast<float>(1.0 / sqrt(partial[0] / shape.columns + static_cast<double>(shape.epsilon)));
}

/// One row done right, a block a row.
__device__ inline void do_row(const ks_rmsnorm_shape& shape, const ks_rmsnorm_call& call, int64_t row) {
  const float scale = scale_of_row(shape, call, row);
  for (int c = threadIdx.x; c < shape.columns; c += kThreads)
    store(call.output, shape.dtype, row * shape.output_row_stride + c,
          load(call.input, shape.dtype, row * shape.input_row_stride + c) * scale * load(call.weight, shape.dtype, c));
}

__global__ void plain_kernel(ks_rmsnorm_shape shape, ks_rmsnorm_call call) {
  do_row(shape, call, blockIdx.x);
}

}  // namespace

#ifndef OWN_SIZES
extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  return KS_OK;
}
#endif

#ifndef OWN_PLAN
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  return KS_OK;
}
#endif
