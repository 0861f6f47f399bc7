// Attention forward on a GPU, plainly: one block of threads a tile of query rows of one head, keys in order in tiles of 32,
// float arithmetic throughout, no tensor cores. Right on everything the ABI can say, and slow: it is where an agent starts.
// Appended keys are written into the cache by a first, small kernel.
// kernelseek: operator=attention_fwd
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "attention_fwd.h"

namespace {

constexpr int kThreads = 256;
constexpr int kKeyTile = 32;  // one lane a key

__device__ float load(const void* data, int dtype, int64_t i) {
  switch (dtype) {
    case KS_F32: return static_cast<const float*>(data)[i];
    case KS_F16: return __half2float(static_cast<const __half*>(data)[i]);
    case KS_BF16: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    default: return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
  }
}

__device__ void store(void* data, int dtype, int64_t i, float value) {
  switch (dtype) {
    case KS_F32: static_cast<float*>(data)[i] = value; return;
    case KS_F16: static_cast<__half*>(data)[i] = __float2half(value); return;
    case KS_BF16: static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(value); return;
    default: static_cast<__nv_fp8_e4m3*>(data)[i] = __nv_fp8_e4m3(value); return;
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
  if (s.kv_layout == KS_KV_CACHE || s.kv_layout == KS_KV_PAGED) m.keys = call.key_lengths[b] + s.new_keys;
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

/// Column c of a row (given by `at`) at a rotary position.
template <typename At>
__device__ float rotated(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call, int64_t position, int c, const At& at) {
  if (s.rotary_style == KS_ROTARY_NONE || c >= s.rotary_dim) return at(c);
  const int half = s.rotary_dim / 2;
  const bool pairs = s.rotary_style == KS_ROTARY_INTERLEAVED;
  const int pair = pairs ? c / 2 : c % half;
  const bool first = pairs ? c % 2 == 0 : c < half;
  const float cosine = load(call.rotary_cos, s.query_dtype, position * s.rotary_row_stride + pair);
  const float sine = load(call.rotary_sin, s.query_dtype, position * s.rotary_row_stride + pair);
  const float other = at(pairs ? (first ? c + 1 : c - 1) : (first ? c + half : c - half));
  return first ? at(c) * cosine - other * sine : other * sine + at(c) * cosine;
}

/// Writes the appended keys, rotated, and values into the cache: a block a (key, head, member).
__global__ void append_kernel(ks_attention_fwd_shape s, ks_attention_fwd_call call) {
  const int t = blockIdx.x, g = blockIdx.y, b = blockIdx.z;
  const int64_t position = call.key_lengths[b] + t;
  for (int c = threadIdx.x; c < s.key_dim; c += blockDim.x) {
    const float value = rotated(s, call, position, c, [&](int column) {
      return load(call.new_key, s.kv_dtype, b * s.new_key_batch_stride + t * s.new_key_row_stride + g * s.new_key_head_stride + column);
    });
    store(call.key, s.kv_dtype, key_offset(s, call, b, position, s.key_batch_stride, s.key_row_stride) + g * s.key_head_stride + c, value);
  }
  for (int c = threadIdx.x; c < s.value_dim; c += blockDim.x)
    store(call.value, s.kv_dtype, key_offset(s, call, b, position, s.value_batch_stride, s.value_row_stride) + g * s.value_head_stride + c,
          load(call.new_value, s.kv_dtype, b * s.new_value_batch_stride + t * s.new_value_row_stride + g * s.new_value_head_stride + c));
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
__global__ void __launch_bounds__(kThreads) attention_kernel(ks_attention_fwd_shape s, ks_attention_fwd_call call) {
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
    queries[(i / s.key_dim) * pitch + i % s.key_dim] = row < m.rows ? rotated(s, call, m.keys - s.new_keys + row, i % s.key_dim,
                              [&](int column) { return load_query(s, call, b, row, head, column); }) : 0.0f;
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
    const int64_t packed = s.rows_layout == KS_ROWS_PACKED ? m.first_row + row : row;
    const int64_t out = b * s.output_batch_stride + packed * s.output_row_stride + head * s.output_head_stride;
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
      if (column < s.value_dim)
        store(call.output, s.output_dtype, out + column, total > 0 ? output[r][c] * factor / total * value_scale : 0.0f);
    }
    if (lane == 0)
      call.lse[b * s.lse_batch_stride + head * s.lse_head_stride + packed * s.lse_row_stride] = total > 0 ? largest + logf(total) : -INFINITY;
  }
}

template <int kRowsPerWarp, int kChunks>
ks_status launch(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call) {
  constexpr int kRowTile = kRowsPerWarp * kThreads / 32;
  const int widest = s.key_dim + 1 > s.value_dim ? s.key_dim + 1 : s.value_dim;
  const size_t bytes = sizeof(float) * static_cast<size_t>(kRowTile * (s.key_dim + 1) + kKeyTile * widest + kRowTile * kKeyTile);
  cudaFuncSetAttribute(attention_kernel<kRowsPerWarp, kChunks>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  const dim3 grid(static_cast<unsigned>((s.max_rows + kRowTile - 1) / kRowTile), static_cast<unsigned>(s.query_heads), static_cast<unsigned>(s.batch));
  attention_kernel<kRowsPerWarp, kChunks><<<grid, kThreads, bytes, static_cast<cudaStream_t>(call.context.stream)>>>(s, call);
  return cudaGetLastError() == cudaSuccess ? KS_OK : KS_FAILED;
}

}  // namespace

extern "C" {

ks_status ks_sizes(const ks_attention_fwd_shape*, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  return KS_OK;
}

ks_status ks_plan(const ks_attention_fwd_shape*, void*) { return KS_OK; }

ks_status ks_run(const ks_attention_fwd_call* call) {
  const auto& s = *static_cast<const ks_attention_fwd_shape*>(call->context.shape);
  if (s.new_keys > 0) {
    const dim3 grid(static_cast<unsigned>(s.new_keys), static_cast<unsigned>(s.kv_heads), static_cast<unsigned>(s.batch));
    append_kernel<<<grid, 128, 0, static_cast<cudaStream_t>(call->context.stream)>>>(s, *call);
  }
  if (s.value_dim <= 64) return launch<8, 2>(s, *call);
  if (s.value_dim <= 128) return launch<8, 4>(s, *call);
  if (s.value_dim <= 256) return launch<4, 8>(s, *call);
  return launch<4, 16>(s, *call);
}
}
