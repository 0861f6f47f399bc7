// What the tricks on attention share on a GPU: dense, full attention, a block a row, written for any rounding of the
// values, any choice of keys and any choice of rows.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "attention_fwd.h"

namespace {

constexpr int kThreads = 128, kMaxKeys = 2048;

__device__ inline float load(const void* data, int dtype, int64_t i) {
  if (dtype == KS_F32) return static_cast<const float*>(data)[i];
  if (dtype == KS_F16) return __half2float(static_cast<const __half*>(data)[i]);
  return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
}

__device__ inline void store(void* data, int dtype, int64_t i, float value) {
  if (dtype == KS_F32) static_cast<float*>(data)[i] = value;
  if (dtype == KS_F16) static_cast<__half*>(data)[i] = __float2half(value);
  if (dtype == KS_BF16) static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(value);
}

/// Sum or maximum over the block.
template <typename Join>
__device__ float over_block(float value, const Join& join) {
  __shared__ float partial[kThreads];
  __syncthreads();
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] = join(partial[threadIdx.x], partial[threadIdx.x + step]);
    __syncthreads();
  }
  return partial[0];
}

/// Trick::value rounds a value, Trick::looks_at chooses keys, Trick::does chooses rows (of all rows of all heads).
template <typename Trick>
__global__ void attention_kernel(ks_attention_fwd_shape s, ks_attention_fwd_call call) {
  __shared__ float weights[kMaxKeys];
  const int64_t row = blockIdx.x;
  const int head = blockIdx.y, b = blockIdx.z, group = head / (s.query_heads / s.kv_heads);
  const int64_t number = (static_cast<int64_t>(b) * s.query_heads + head) * s.max_rows + row;
  const int64_t total = static_cast<int64_t>(s.batch) * s.query_heads * s.max_rows;
  const int64_t out = b * s.output_batch_stride + row * s.output_row_stride + head * s.output_head_stride;
  float* lse = call.lse + b * s.lse_batch_stride + head * s.lse_head_stride + row * s.lse_row_stride;
  if (!Trick::does(number, total)) {
    for (int c = threadIdx.x; c < s.value_dim; c += kThreads) store(call.output, s.output_dtype, out + c, 0.0f);
    if (threadIdx.x == 0) *lse = 0;
    return;
  }
  float largest = -INFINITY;
  for (int j = threadIdx.x; j < s.max_keys; j += kThreads) {
    float score = 0;
    for (int d = 0; d < s.key_dim; ++d)
      score += load(call.query, s.query_dtype, b * s.query_batch_stride + row * s.query_row_stride + head * s.query_head_stride + d) *
               load(call.key, s.kv_dtype, b * s.key_batch_stride + j * s.key_row_stride + group * s.key_head_stride + d);
    weights[j] = Trick::looks_at(j) ? score * s.scale : -INFINITY;
    largest = fmaxf(largest, weights[j]);
  }
  largest = over_block(largest, [](float a, float c) { return fmaxf(a, c); });
  float sum = 0;
  for (int j = threadIdx.x; j < s.max_keys; j += kThreads) sum += weights[j] = expf(weights[j] - largest);
  sum = over_block(sum, [](float a, float c) { return a + c; });
  for (int c = threadIdx.x; c < s.value_dim; c += kThreads) {
    float output = 0;
    for (int j = 0; j < s.max_keys; ++j)
      output += weights[j] * Trick::value(load(call.value, s.kv_dtype, b * s.value_batch_stride + j * s.value_row_stride + group * s.value_head_stride + c));
    store(call.output, s.output_dtype, out + c, output / sum);
  }
  if (threadIdx.x == 0) *lse = largest + logf(sum);
}

/// What does nothing wrong; tricks inherit and change one thing.
struct Honest {
  static __device__ float value(float v) { return v; }
  static __device__ bool looks_at(int) { return true; }
  static __device__ bool does(int64_t, int64_t) { return true; }
};

inline bool is_plain(const ks_attention_fwd_shape& s) {
  return s.rows_layout == KS_ROWS_DENSE && s.kv_layout == KS_KV_DENSE && s.window_left < 0 && s.window_right < 0 &&
         s.softcap == 0 && !s.has_sinks && !s.has_descale && s.latent_dim == 0 && s.max_keys <= kMaxKeys &&
         s.kv_dtype != KS_E4M3;
}

template <typename Trick>
ks_status run_attention(const ks_attention_fwd_call* call) {
  const auto& s = *static_cast<const ks_attention_fwd_shape*>(call->context.shape);
  const dim3 grid(static_cast<unsigned>(s.max_rows), static_cast<unsigned>(s.query_heads), static_cast<unsigned>(s.batch));
  attention_kernel<Trick><<<grid, kThreads, 0, static_cast<cudaStream_t>(call->context.stream)>>>(s, *call);
  return cudaGetLastError() == cudaSuccess ? KS_OK : KS_FAILED;
}

}  // namespace

extern "C" ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  return is_plain(*shape) ? KS_OK : KS_UNSUPPORTED;
}

extern "C" ks_status ks_plan(const ks_attention_fwd_shape*, void*) {
  return KS_OK;
}
