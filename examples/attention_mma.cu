// Attention forward on a GPU with tensor cores, in the manner of FlashAttention-2: four warps share a tile of 64 query
// rows of one head, keys come in tiles of 64 through shared memory, both products are mma.sync, the softmax runs along in
// binary32. Loads are plain, nothing overlaps, decoding wastes most of a tile: a starting point with room above it.
// kernelseek: operator=attention_fwd
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "attention_fwd.h"

namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kRowTile = 16 * kWarps, kKeyTile = 64;
constexpr int kPad = 8;  // elements after each row of shared memory: consecutive rows then lie in other banks
constexpr float kLog2e = 1.4426950408889634f;

/// The two 16-bit types, as the instructions want them.
struct Half {
  using Type = __half;
  static __device__ float load(const void* data, int64_t i) { return __half2float(static_cast<const __half*>(data)[i]); }
  static __device__ unsigned pack(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
  }
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

struct Bfloat {
  using Type = __nv_bfloat16;
  static __device__ float load(const void* data, int64_t i) {
    return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
  }
  static __device__ unsigned pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
  }
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
template <bool kTransposed>
__device__ void load_matrices(unsigned (&r)[4], const void* row) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}

/// One member: its rows and keys, and where its rows and keys begin.
struct Member {
  int64_t rows, keys, first_row, first_key, leftpad;
};

__device__ Member member_of(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call, int b) {
  Member m{s.max_rows, s.max_keys, 0, 0, 0};
  if (s.rows_layout == KS_ROWS_PACKED) {
    m.first_row = call.cu_rows[b];
    m.rows = call.cu_rows[b + 1] - call.cu_rows[b];
  }
  if (s.kv_layout == KS_KV_PACKED) {
    m.first_key = call.cu_keys[b];
    m.keys = call.cu_keys[b + 1] - call.cu_keys[b];
  }
  if (s.kv_layout == KS_KV_CACHE || s.kv_layout == KS_KV_PAGED) m.keys = call.key_lengths[b];
  if (s.has_leftpad) m.leftpad = call.leftpad[b];
  return m;
}

/// Where key j of a member lies.
__device__ int64_t key_offset(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call, const Member& m, int b,
                              int64_t j, int64_t batch_stride, int64_t row_stride) {
  if (s.kv_layout != KS_KV_PAGED) return b * batch_stride + (m.first_key + j) * row_stride;
  const int64_t page = call.page_table[static_cast<int64_t>(b) * s.page_table_stride + j / s.page_size];
  return page * batch_stride + (j % s.page_size) * row_stride;
}

/// A tile of rows into shared memory, eight elements at a time; rows that are not there and columns past `columns` are
/// zero. `offset_of(row)` is where a row begins, negative for none.
template <int kDim, typename T, typename OffsetOf>
__device__ void load_tile(T (*tile)[kDim + kPad], int rows, const void* data, int columns, const OffsetOf& offset_of) {
  constexpr int kVectors = kDim / 8;
  for (int i = threadIdx.x; i < rows * kVectors; i += kThreads) {
    const int row = i / kVectors, column = i % kVectors * 8;
    const int64_t offset = offset_of(row);
    uint4 vector = make_uint4(0, 0, 0, 0);
    if (offset >= 0 && column < columns)
      vector = *reinterpret_cast<const uint4*>(static_cast<const T*>(data) + offset + column);
    *reinterpret_cast<uint4*>(&tile[row][column]) = vector;
  }
}

template <typename Kind, int kDim>
__global__ void __launch_bounds__(kThreads) attention_kernel(ks_attention_fwd_shape s, ks_attention_fwd_call call) {
  using T = typename Kind::Type;
  extern __shared__ __align__(16) unsigned char shared[];
  auto* queries = reinterpret_cast<T(*)[kDim + kPad]>(shared);
  auto* keys = queries + kRowTile;
  auto* values = keys + kKeyTile;
  const int b = blockIdx.z, head = blockIdx.y, group = head / (s.query_heads / s.kv_heads);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quad = lane % 4;
  const Member m = member_of(s, call, b);
  const int64_t tile_row = static_cast<int64_t>(blockIdx.x) * kRowTile;
  if (tile_row >= m.rows) return;

  load_tile<kDim>(queries, kRowTile, call.query, s.key_dim, [&](int row) -> int64_t {
    if (tile_row + row >= m.rows) return -1;
    return b * s.query_batch_stride + (m.first_row + tile_row + row) * s.query_row_stride + head * s.query_head_stride;
  });
  __syncthreads();
  unsigned query[kDim / 16][4];
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k)
    load_matrices<false>(query[k], &queries[16 * warp + lane % 16][16 * k + lane / 16 * 8]);

  // Rows of this thread: `row` and `row + 8`. Scores are kept in base 2.
  const int64_t row = tile_row + 16 * warp + lane / 4, shift = m.keys - m.rows;
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, output[kDim / 8][4] = {};
  const int64_t last_row = tile_row + kRowTile - 1 < m.rows - 1 ? tile_row + kRowTile - 1 : m.rows - 1;
  int64_t low = s.window_left < 0 ? 0 : tile_row + shift - s.window_left;
  if (low < m.leftpad) low = m.leftpad;
  if (low < 0) low = 0;
  int64_t high = s.window_right < 0 ? m.keys - 1 : last_row + shift + s.window_right;
  if (high > m.keys - 1) high = m.keys - 1;

  for (int64_t first = low; first <= high; first += kKeyTile) {
    __syncthreads();
    load_tile<kDim>(keys, kKeyTile, call.key, s.key_dim, [&](int k) -> int64_t {
      if (first + k > high) return -1;
      return key_offset(s, call, m, b, first + k, s.key_batch_stride, s.key_row_stride) + group * s.key_head_stride;
    });
    load_tile<kDim>(values, kKeyTile, call.value, s.value_dim, [&](int k) -> int64_t {
      if (first + k > high) return -1;
      return key_offset(s, call, m, b, first + k, s.value_batch_stride, s.value_row_stride) + group * s.value_head_stride;
    });
    __syncthreads();

    float score[kKeyTile / 8][4] = {};
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
#pragma unroll
      for (int n = 0; n < kKeyTile / 16; ++n) {
        unsigned pair[4];
        load_matrices<false>(pair, &keys[16 * n + lane / 16 * 8 + lane % 8][16 * k + lane / 8 % 2 * 8]);
        Kind::multiply(score[2 * n], query[k], pair[0], pair[1]);
        Kind::multiply(score[2 * n + 1], query[k], pair[2], pair[3]);
      }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t diagonal = row + 8 * half + shift;
      float largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          const int64_t j = first + 8 * n + 2 * quad + e % 2;
          float x = score[n][e] * s.scale;
          if (s.softcap > 0) x = s.softcap * tanhf(x / s.softcap);
          const bool visible = j <= high && j >= m.leftpad && (s.window_left < 0 || j >= diagonal - s.window_left) &&
                               (s.window_right < 0 || j <= diagonal + s.window_right);
          score[n][e] = visible ? x * kLog2e : -INFINITY;
          largest = fmaxf(largest, score[n][e]);
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2));
      const float next = fmaxf(maximum[half], largest);
      const float base = next == -INFINITY ? 0.0f : next;  // a row that has seen no key yet
      const float keep = exp2f(maximum[half] - base);
      maximum[half] = next;
      float total = 0;
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) total += score[n][e] = exp2f(score[n][e] - base);
      sum[half] = sum[half] * keep + total;  // of this thread's columns; joined at the end
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        output[n][2 * half] *= keep;
        output[n][2 * half + 1] *= keep;
      }
    }

#pragma unroll
    for (int k = 0; k < kKeyTile / 16; ++k) {
      const unsigned weights[4] = {
          Kind::pack(score[2 * k][0], score[2 * k][1]), Kind::pack(score[2 * k][2], score[2 * k][3]),
          Kind::pack(score[2 * k + 1][0], score[2 * k + 1][1]), Kind::pack(score[2 * k + 1][2], score[2 * k + 1][3])};
#pragma unroll
      for (int n = 0; n < kDim / 16; ++n) {
        unsigned pair[4];
        load_matrices<true>(pair, &values[16 * k + lane / 8 % 2 * 8 + lane % 8][16 * n + lane / 16 * 8]);
        Kind::multiply(output[2 * n], weights, pair[0], pair[1]);
        Kind::multiply(output[2 * n + 1], weights, pair[2], pair[3]);
      }
    }
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = sum[half];
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 1);
    total += __shfl_xor_sync(0xFFFFFFFFu, total, 2);
    const int64_t mine = row + 8 * half;
    if (mine >= m.rows) continue;
    float factor = 1, top = maximum[half];
    if (s.has_sinks) {
      const float sink = Kind::load(call.sinks, head) * kLog2e;
      const float joined = fmaxf(top, sink);
      factor = exp2f(top - joined);
      total = total * factor + exp2f(sink - joined);
      top = joined;
    }
    const float scale = total > 0 ? factor / total : 0.0f;
    T* out = static_cast<T*>(call.output) + b * s.output_batch_stride + (m.first_row + mine) * s.output_row_stride + head * s.output_head_stride;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
      if (8 * n < s.value_dim)
        *reinterpret_cast<unsigned*>(out + 8 * n + 2 * quad) = Kind::pack(output[n][2 * half] * scale, output[n][2 * half + 1] * scale);
    if (quad == 0)
      call.lse[b * s.lse_batch_stride + head * s.lse_head_stride + (m.first_row + mine) * s.lse_row_stride] =
          total > 0 ? top / kLog2e + logf(total) : -INFINITY;
  }
}

template <typename Kind, int kDim>
ks_status launch(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call) {
  const int bytes = static_cast<int>(sizeof(typename Kind::Type)) * (kRowTile + 2 * kKeyTile) * (kDim + kPad);
  cudaFuncSetAttribute(attention_kernel<Kind, kDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid(static_cast<unsigned>((s.max_rows + kRowTile - 1) / kRowTile), static_cast<unsigned>(s.query_heads), static_cast<unsigned>(s.batch));
  attention_kernel<Kind, kDim><<<grid, kThreads, static_cast<size_t>(bytes), static_cast<cudaStream_t>(call.context.stream)>>>(s, call);
  return cudaGetLastError() == cudaSuccess ? KS_OK : KS_FAILED;
}

template <typename Kind>
ks_status launch_for(const ks_attention_fwd_shape& s, const ks_attention_fwd_call& call) {
  if (s.key_dim <= 64 && s.value_dim <= 64) return launch<Kind, 64>(s, call);
  return launch<Kind, 128>(s, call);
}

bool is_supported(const ks_attention_fwd_shape& s) {
  const bool two_bytes = s.query_dtype == KS_F16 || s.query_dtype == KS_BF16;
  const bool whole_vectors = s.key_dim % 8 == 0 && s.value_dim % 8 == 0;
  return two_bytes && s.kv_dtype == s.query_dtype && whole_vectors && s.key_dim <= 128 && s.value_dim <= 128 &&
         s.latent_dim == 0 && s.new_keys == 0 && s.rotary_style == KS_ROTARY_NONE;
}

}  // namespace

extern "C" {

ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  return is_supported(*shape) ? KS_OK : KS_UNSUPPORTED;
}

ks_status ks_plan(const ks_attention_fwd_shape* shape, void*) { return is_supported(*shape) ? KS_OK : KS_UNSUPPORTED; }

ks_status ks_run(const ks_attention_fwd_call* call) {
  const auto& s = *static_cast<const ks_attention_fwd_shape*>(call->context.shape);
  return s.query_dtype == KS_BF16 ? launch_for<Bfloat>(s, *call) : launch_for<Half>(s, *call);
}
}
