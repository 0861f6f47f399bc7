// RMSNorm on a GPU, plainly: a block of threads a row, one pass for the sum of squares, one to scale. It is where an agent
// starts.
// kernelseek: operator=rmsnorm
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "rmsnorm.h"

namespace {

constexpr int kThreads = 256;

__device__ float load(const void* data, int32_t dtype, int64_t i) {
  if (dtype == KS_F32) return static_cast<const float*>(data)[i];
  if (dtype == KS_F16) return __half2float(static_cast<const __half*>(data)[i]);
  return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
}

__device__ void store(void* data, int32_t dtype, int64_t i, float value) {
  if (dtype == KS_F32) static_cast<float*>(data)[i] = value;
  if (dtype == KS_F16) static_cast<__half*>(data)[i] = __float2half(value);
  if (dtype == KS_BF16) static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(value);
}

__global__ void __launch_bounds__(kThreads) rmsnorm_kernel(ks_rmsnorm_shape shape, ks_rmsnorm_call call) {
  __shared__ float sums[kThreads / 32];
  const int64_t row = blockIdx.x;
  float sum = 0;
  for (int c = threadIdx.x; c < shape.columns; c += kThreads) {
    const float x = load(call.input, shape.dtype, row * shape.input_row_stride + c);
    sum += x * x;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (float partial : sums) sum += partial;
  const float scale = rsqrtf(sum / static_cast<float>(shape.columns) + shape.epsilon);
  for (int c = threadIdx.x; c < shape.columns; c += kThreads)
    store(call.output, shape.dtype, row * shape.output_row_stride + c,
          load(call.input, shape.dtype, row * shape.input_row_stride + c) * scale * load(call.weight, shape.dtype, c));
}

}  // namespace

extern "C" {

ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  return KS_OK;
}

ks_status ks_plan(const ks_rmsnorm_shape*, void*) { return KS_OK; }

ks_status ks_run(const ks_rmsnorm_call* call) {
  const auto& shape = *static_cast<const ks_rmsnorm_shape*>(call->context.shape);
  rmsnorm_kernel<<<static_cast<unsigned>(shape.rows), kThreads, 0, static_cast<cudaStream_t>(call->context.stream)>>>(shape, *call);
  return cudaGetLastError() == cudaSuccess ? KS_OK : KS_FAILED;
}
}
