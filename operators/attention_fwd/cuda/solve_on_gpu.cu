#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstring>

#include "abi/attention_fwd.h"
#include "operators/attention_fwd/cuda/solve_on_gpu.h"

namespace ks::attention_fwd {
namespace {

constexpr int kThreads = 256;
constexpr int kKeyTile = 32;  // one lane a key

struct Answer {
  float* output;  // [rows, heads, value_dim]
  float* lse;     // [rows, heads]
};

__device__ float load(const void* data, int dtype, int64_t i) {
  switch (dtype) {
    case KS_F32: return static_cast<const float*>(data)[i];
    case KS_F16: return __half2float(static_cast<const __half*>(data)[i]);
    case KS_BF16: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    default: return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
  }
}

/// One member: its rows and keys, and where its rows begin.
struct Member {
  int64_t rows, keys, first_row, leftpad;
};

__device__ Member member(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call, int b) {
  Member m{s.max_rows, s.max_keys, static_cast<int64_t>(b) * s.max_rows, 0};
  if (s.rows_layout == KS_ROWS_PACKED) {
    m.first_row = call.cu_rows[b];
    m.rows = call.cu_rows[b + 1] - call.cu_rows[b];
  }
  if (s.kv_layout == KS_KV_PACKED) m.keys = call.cu_keys[b + 1] - call.cu_keys[b];
  if (s.kv_layout == KS_KV_CACHE || s.kv_layout == KS_KV_PAGED) m.keys = call.key_lengths[b];
  if (s.has_leftpad) m.leftpad = call.leftpad[b];
  return m;
}

__device__ int64_t key_offset(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call, int b, int64_t j,
                              int64_t batch_stride, int64_t row_stride) {
  if (s.kv_layout == KS_KV_PACKED) return (call.cu_keys[b] + j) * row_stride;
  if (s.kv_layout != KS_KV_PAGED) return b * batch_stride + j * row_stride;
  const int64_t page = call.page_table[static_cast<int64_t>(b) * s.page_table_stride + j / s.page_size];
  return page * batch_stride + (j % s.page_size) * row_stride;
}

__device__ float load_query(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call, int b, int64_t row,
                            int head, int column) {
  const int64_t first = s.rows_layout == KS_ROWS_PACKED ? call.cu_rows[b] : 0;
  if (column < s.latent_dim)
    return load(call.query_latent, s.query_dtype,
                b * s.query_latent_batch_stride + (first + row) * s.query_latent_row_stride +
                    head * s.query_latent_head_stride + column);
  return load(call.query, s.query_dtype,
              b * s.query_batch_stride + (first + row) * s.query_row_stride + head * s.query_head_stride + column -
                  s.latent_dim);
}

/// A tile of kRowsPerWarp x 8 warps query rows; each lane owns columns lane, lane + 32, … of the output.
template <int kRowsPerWarp, int kChunks>
__global__ void __launch_bounds__(kThreads) solve_kernel(ks_attention_fwd_shape s, ks_attention_fwd_call call, Answer answer) {
  constexpr int kRowTile = kRowsPerWarp * kThreads / 32;
  extern __shared__ float shared[];
  const int pitch = s.key_dim + 1;
  float* queries = shared;                       // [kRowTile][pitch]
  float* keys = queries + kRowTile * pitch;      // [kKeyTile][max(pitch, value_dim)]
  float* weights = keys + kKeyTile * (pitch > s.value_dim ? pitch : s.value_dim);  // [kRowTile][kKeyTile]
  const int b = blockIdx.z, head = blockIdx.y, group = head / (s.query_heads / s.kv_heads);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Member m = member(s, call, b);
  const int64_t tile_row = static_cast<int64_t>(blockIdx.x) * kRowTile;
  if (tile_row >= m.rows) return;
  const int64_t descale_at = static_cast<int64_t>(b) * s.descale_batch_stride + static_cast<int64_t>(group) * s.descale_head_stride;
  float scale = s.scale, value_scale = 1;
  if (s.has_descale) {
    scale *= call.key_descale[descale_at] * (call.query_descale != nullptr ? call.query_descale[descale_at] : 1.0f);
    value_scale = call.value_descale[descale_at];
  }
  for (int i = threadIdx.x; i < kRowTile * s.key_dim; i += kThreads) {
    const int64_t row = tile_row + i / s.key_dim;
    queries[(i / s.key_dim) * pitch + i % s.key_dim] = row < m.rows ? load_query(s, call, b, row, head, i % s.key_dim) : 0.0f;
  }
  float maximum[kRowsPerWarp], sum[kRowsPerWarp], output[kRowsPerWarp][kChunks];
  for (int r = 0; r < kRowsPerWarp; ++r) {
    maximum[r] = -INFINITY;
    sum[r] = 0;
    for (int c = 0; c < kChunks; ++c) output[r][c] = 0;
  }
  const int64_t shift = m.keys - m.rows;
  const int64_t last_row = tile_row + kRowTile - 1 < m.rows - 1 ? tile_row + kRowTile - 1 : m.rows - 1;
  int64_t low = s.window_left < 0 ? 0 : tile_row + shift - s.window_left;
  if (low < m.leftpad) low = m.leftpad;
  if (low < 0) low = 0;
  int64_t high = s.window_right < 0 ? m.keys - 1 : last_row + shift + s.window_right;
  if (high > m.keys - 1) high = m.keys - 1;
  for (int64_t first = low; first <= high; first += kKeyTile) {
    __syncthreads();
    for (int i = threadIdx.x; i < kKeyTile * s.key_dim; i += kThreads) {
      const int64_t j = first + i / s.key_dim;
      keys[(i / s.key_dim) * pitch + i % s.key_dim] =
          j <= high ? load(call.key, s.kv_dtype, key_offset(s, call, b, j, s.key_batch_stride, s.key_row_stride) + group * s.key_head_stride + i % s.key_dim) : 0.0f;
    }
    __syncthreads();
    float score[kRowsPerWarp];
    for (int r = 0; r < kRowsPerWarp; ++r) score[r] = 0;
    for (int d = 0; d < s.key_dim; ++d) {
      const float k = keys[lane * pitch + d];
#pragma unroll
      for (int r = 0; r < kRowsPerWarp; ++r) score[r] += queries[(warp * kRowsPerWarp + r) * pitch + d] * k;
    }
    const int64_t j = first + lane;
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const int64_t diagonal = tile_row + warp * kRowsPerWarp + r + shift;
      float x = score[r] * scale;
      if (s.softcap > 0) x = s.softcap * tanhf(x / s.softcap);
      const bool visible = j <= high && j >= m.leftpad && (s.window_left < 0 || j >= diagonal - s.window_left) &&
                           (s.window_right < 0 || j <= diagonal + s.window_right);
      if (!visible) x = -INFINITY;
      float largest = x;
      for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
      const float next = fmaxf(maximum[r], largest);
      const float keep = maximum[r] == -INFINITY ? 0.0f : expf(maximum[r] - next);
      const float p = visible ? expf(x - next) : 0.0f;
      float total = p;
      for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xFFFFFFFFu, total, step);
      sum[r] = sum[r] * keep + total;
      maximum[r] = next;
      for (int c = 0; c < kChunks; ++c) output[r][c] *= keep;
      weights[(warp * kRowsPerWarp + r) * kKeyTile + lane] = p;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kKeyTile * s.value_dim; i += kThreads) {
      const int64_t v = first + i / s.value_dim;
      keys[i] = v <= high ? load(call.value, s.kv_dtype, key_offset(s, call, b, v, s.value_batch_stride, s.value_row_stride) + group * s.value_head_stride + i % s.value_dim) : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < kKeyTile; ++k) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const int column = c * 32 + lane;
        const float v = column < s.value_dim ? keys[k * s.value_dim + column] : 0.0f;
#pragma unroll
        for (int r = 0; r < kRowsPerWarp; ++r) output[r][c] += weights[(warp * kRowsPerWarp + r) * kKeyTile + k] * v;
      }
    }
  }
  for (int r = 0; r < kRowsPerWarp; ++r) {
    const int64_t row = tile_row + warp * kRowsPerWarp + r;
    if (row >= m.rows) continue;
    const int64_t at = (m.first_row + row) * s.query_heads + head;
    float largest = maximum[r], total = sum[r], factor = 1;
    if (s.has_sinks) {
      const float sink = load(call.sinks, s.query_dtype == KS_E4M3 ? KS_BF16 : s.query_dtype, head);
      const float top = fmaxf(largest, sink);
      factor = largest == -INFINITY ? 0.0f : expf(largest - top);
      total = total * factor + expf(sink - top);
      largest = top;
    }
    for (int c = 0; c < kChunks; ++c) {
      const int column = c * 32 + lane;
      if (column < s.value_dim) answer.output[at * s.value_dim + column] = total > 0 ? output[r][c] * factor / total * value_scale : 0.0f;
    }
    if (lane == 0) answer.lse[at] = total > 0 ? largest + logf(total) : -INFINITY;
  }
}

template <int kRowsPerWarp, int kChunks>
void launch(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call, const Answer& answer, cudaStream_t stream) {
  constexpr int kRowTile = kRowsPerWarp * kThreads / 32;
  const size_t widest = static_cast<size_t>(s.key_dim + 1 > s.value_dim ? s.key_dim + 1 : s.value_dim);
  const size_t bytes = sizeof(float) * (static_cast<size_t>(kRowTile) * (s.key_dim + 1) + kKeyTile * widest + static_cast<size_t>(kRowTile) * kKeyTile);
  cudaFuncSetAttribute(solve_kernel<kRowsPerWarp, kChunks>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  const dim3 grid(static_cast<unsigned>((s.max_rows + kRowTile - 1) / kRowTile), static_cast<unsigned>(s.query_heads), static_cast<unsigned>(s.batch));
  solve_kernel<kRowsPerWarp, kChunks><<<grid, kThreads, bytes, stream>>>(s, call, answer);
}

}  // namespace

bool solve_on_gpu(const op::Problem& problem, const std::vector<const void*>& inputs, const std::vector<float*>& values,
                  void* stream) {
  ks_attention_fwd_shape s;
  ks_attention_fwd_call call;
  std::memcpy(&s, problem.shape_blob.data(), sizeof s);
  std::memcpy(&call, problem.call_blob.data(), sizeof call);
  if (s.new_keys > 0) return false;
  Answer answer{};
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const op::Tensor& tensor = problem.tensors[t];
    if (tensor.name == "output") answer.output = values[t];
    if (tensor.name == "lse") answer.lse = values[t];
    for (const auto& slot : tensor.slots) {
      const void* address = static_cast<const char*>(inputs[t]) + slot.byte_offset;
      std::memcpy(reinterpret_cast<char*>(&call) + slot.call_offset, &address, sizeof address);
    }
  }
  const auto on = static_cast<cudaStream_t>(stream);
  if (s.value_dim <= 64) launch<8, 2>(s, call, answer, on);
  else if (s.value_dim <= 128) launch<8, 4>(s, call, answer, on);
  else if (s.value_dim <= 256) launch<4, 8>(s, call, answer, on);
  else launch<4, 16>(s, call, answer, on);
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace ks::attention_fwd
