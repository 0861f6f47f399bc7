// Plain device code for the bench: inputs by hashing, the reference of single query rows, and checks of whole outputs.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>

namespace ks::bench {

__host__ __device__ inline uint32_t mix(uint64_t x) {
  x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull, x ^= x >> 33;
  return static_cast<uint32_t>(x >> 16);
}

template <typename T>
__device__ inline T to(float x) {
  return static_cast<T>(x);
}

/// Normal numbers, a function of (seed, index) alone.
template <typename T>
__global__ void fill_normal(T* data, int64_t count, uint64_t seed, float size) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    const uint32_t a = mix(seed * 0x9e3779b97f4a7c15ull + 2 * i), b = mix(seed * 0x9e3779b97f4a7c15ull + 2 * i + 1);
    const float radius = sqrtf(-2.0f * logf((a + 1.0f) * 2.3283064e-10f));
    data[i] = to<T>(size * radius * cosf(b * 1.4629181e-9f));
  }
}

template <typename T>
__global__ void fill_value(T* data, int64_t count, T value) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    data[i] = value;
  }
}

/// Where the pieces lie; strides in elements. Key j of member b is at key_row(b, j).
struct ReferenceLayout {
  const int *cu_rows, *cu_keys, *key_lengths, *page_table;
  int max_rows, max_keys, page_size, page_table_stride, layout;  // layout: 0 dense, 1 packed, 2 cache, 3 paged
  int query_heads, kv_heads, key_dim, value_dim, window_left, window_right;
  float scale, softcap;
  int64_t total_rows;
  int value_stride;  ///< columns from a key's value to the next: more than value_dim where values lie in keys
  int rotary_style, rotary_dim;
  const int* leftpad;
  const float *query_descale, *key_descale, *value_descale;  ///< [member, kv head], or null
};

__device__ inline int64_t key_row(const ReferenceLayout& l, int b, int j) {
  if (l.layout == 1) return l.cu_keys[b] + j;
  if (l.layout == 3)
    return int64_t{l.page_table[b * l.page_table_stride + j / l.page_size]} * l.page_size + j % l.page_size;
  return int64_t{b} * l.max_keys + j;
}

/// The angle's cosine and sine as the call's tables hold them.
template <typename T>
struct RotaryTables {
  const T *cosine, *sine;
};

/// Column c of a row of `position` after rotation; `at(c)` gives the row's columns.
template <typename T, typename At>
__device__ inline double rotated(const ReferenceLayout& l, const RotaryTables<T>& tables, int position, int c, At at) {
  if (l.rotary_style == 0 || c >= l.rotary_dim) return at(c);
  const int half = l.rotary_dim / 2;
  const bool halves = l.rotary_style == 1;
  const int pair = halves ? c % half : c / 2;
  const bool second = halves ? c >= half : c % 2 == 1;
  const double x = at(halves ? pair : 2 * pair), y = at(halves ? pair + half : 2 * pair + 1);
  const double cosine = double(float(tables.cosine[int64_t{position} * half + pair]));
  const double sine = double(float(tables.sine[int64_t{position} * half + pair]));
  return second ? x * sine + y * cosine : x * cosine - y * sine;
}

/// Fills the tables: the usual frequencies.
template <typename T>
__global__ void fill_rotary(T* cosine, T* sine, int positions, int half) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < positions * half; i += gridDim.x * blockDim.x) {
    const double angle = (i / half) * pow(10000.0, -double(i % half) / half);
    cosine[i] = to<T>(float(cos(angle))), sine[i] = to<T>(float(sin(angle)));
  }
}

/// What appending must leave in the cache: one block a (member, new key, kv head). lengths: keys before.
template <typename T>
__global__ void append_reference(ReferenceLayout l, const int* keys_after, int new_keys, const T* new_key,
                                 const T* new_value, RotaryTables<T> tables, T* K, T* V) {
  const int group = blockIdx.x % l.kv_heads, i = blockIdx.x / l.kv_heads % new_keys;
  const int member = blockIdx.x / l.kv_heads / new_keys;
  const int position = keys_after[member] - new_keys + i;
  const int64_t to_row = key_row(l, member, position) * l.kv_heads + group;
  for (int c = threadIdx.x; c < l.key_dim; c += blockDim.x) {
    K[to_row * l.key_dim + c] = to<T>(float(rotated(l, tables, position, c, [&](int column) {
      return double(float(new_key[int64_t{blockIdx.x} * l.key_dim + column]));
    })));
  }
  for (int c = threadIdx.x; c < l.value_dim; c += blockDim.x)
    V[to_row * l.value_dim + c] = new_value[int64_t{blockIdx.x} * l.value_dim + c];
}

/// Counts elements that differ by more than a rounding step (NaN equals NaN).
template <typename T>
__global__ void count_different(const T* a, const T* b, int64_t count, float tolerance, unsigned long long* different) {
  unsigned long long bad = 0;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    const float x = float(a[i]), y = float(b[i]);
    bad += isnan(x) != isnan(y) || fabsf(x - y) > tolerance * fmaxf(fabsf(x), 0.01f);
  }
  atomicAdd(different, bad);
}

/// Poisons the rows of K and V that no member uses with NaN: blockIdx.x is a row.
template <typename T>
__global__ void poison_unused(T* K, T* V, const uint8_t* used, int kv_heads, int key_dim, int value_dim) {
  if (used[blockIdx.x]) return;
  for (int i = threadIdx.x; i < kv_heads * key_dim; i += blockDim.x)
    K[int64_t{blockIdx.x} * kv_heads * key_dim + i] = to<T>(NAN);
  if (V == nullptr) return;
  for (int i = threadIdx.x; i < kv_heads * value_dim; i += blockDim.x)
    V[int64_t{blockIdx.x} * kv_heads * value_dim + i] = to<T>(NAN);
}

struct Sample {
  int member, row, head;
};
struct SampleError {
  float output;  ///< |o - ref| / |ref|; 1e9 where o is not a number, or not zero where it must be
  float lse;     ///< absolute
};

/// One block a sample; `scores` has room for max_keys floats a block. Sums in double.
template <typename T, typename TK, typename TO>
__global__ void check_rows(ReferenceLayout l, const T* Q, const TK* K, const TK* V, const TO* sinks,
                           RotaryTables<TO> tables, const TO* O, const float* lse, const Sample* samples, int count,
                           float* scores, SampleError* errors) {
  __shared__ double reduced[256];
  __shared__ double turned[576];
  for (int s = blockIdx.x; s < count; s += gridDim.x) {
    const Sample at = samples[s];
    const int group = at.head / (l.query_heads / l.kv_heads);
    const int rows = l.cu_rows[at.member + 1] - l.cu_rows[at.member];
    const int keys = l.layout == 1 ? l.cu_keys[at.member + 1] - l.cu_keys[at.member]
                                   : (l.layout == 0 ? l.max_keys : l.key_lengths[at.member]);
    const int64_t row = l.cu_rows[at.member] + at.row;
    const T* q = Q + (row * l.query_heads + at.head) * l.key_dim;
    __syncthreads();
    for (int c = threadIdx.x; c < l.key_dim; c += 256) {
      turned[c] = rotated(l, tables, keys - rows + at.row, c, [&](int column) { return double(float(q[column])); });
    }
    __syncthreads();
    const int64_t descale = int64_t{at.member} * l.kv_heads + group;
    const double scale = double(l.scale) * (l.query_descale ? l.query_descale[descale] : 1.0f) *
                         (l.key_descale ? l.key_descale[descale] : 1.0f);
    const double value_scale = l.value_descale ? l.value_descale[descale] : 1.0f;
    const int diagonal = at.row + keys - rows;
    const int begin = max(l.leftpad ? l.leftpad[at.member] : 0, l.window_left < 0 ? 0 : diagonal - l.window_left);
    const int end = l.window_right < 0 ? keys : min(keys, diagonal + l.window_right + 1);
    float* p = scores + int64_t{blockIdx.x} * l.max_keys;
    double top = sinks ? double(float(sinks[at.head])) : -INFINITY;
    for (int j = begin + threadIdx.x; j < end; j += 256) {
      const TK* k = K + (key_row(l, at.member, j) * l.kv_heads + group) * l.key_dim;
      double dot = 0;
      for (int c = 0; c < l.key_dim; ++c) dot += turned[c] * double(float(k[c]));
      double score = dot * scale;
      if (l.softcap > 0) score = l.softcap * tanh(score / l.softcap);
      p[j] = float(score);
      top = fmax(top, score);
    }
    const auto reduce = [&](double x, bool maximum) {
      __syncthreads();
      reduced[threadIdx.x] = x;
      __syncthreads();
      for (int half = 128; half; half /= 2) {
        if (threadIdx.x < half) {
          const double a = reduced[threadIdx.x], b = reduced[threadIdx.x + half];
          reduced[threadIdx.x] = maximum ? fmax(a, b) : a + b;
        }
        __syncthreads();
      }
      return reduced[0];
    };
    top = reduce(top, true);
    double sum = 0;
    for (int j = begin + threadIdx.x; j < end; j += 256) sum += exp(double(p[j]) - top);
    sum = reduce(sum, false);
    if (sinks) sum += exp(double(float(sinks[at.head])) - top);
    const bool none = end <= begin;
    double error = 0, size = 0;
    // Columns in groups of 32, keys in 8 parts.
    for (int c0 = 0; c0 < l.value_dim; c0 += 32) {
      const int column = c0 + threadIdx.x % 32;
      double o = 0;
      if (column < l.value_dim) {
        for (int j = begin + threadIdx.x / 32; j < end; j += 8) {
          o += exp(double(p[j]) - top) *
               double(float(V[(key_row(l, at.member, j) * l.kv_heads + group) * l.value_stride + column]));
        }
      }
      __syncthreads();
      reduced[threadIdx.x] = o;
      __syncthreads();
      if (threadIdx.x < 32 && column < l.value_dim) {
        for (int part = 1; part < 8; ++part) o += reduced[threadIdx.x + 32 * part];
        o = none ? 0 : o / sum * value_scale;
        const double got = float(O[(row * l.query_heads + at.head) * l.value_dim + column]);
        error += (got - o) * (got - o), size += o * o;
      }
    }
    __syncthreads();
    error = reduce(threadIdx.x < 32 ? error : 0, false);
    size = reduce(threadIdx.x < 32 ? size : 0, false);
    if (threadIdx.x == 0) {
      const double want = none ? (sinks ? double(float(sinks[at.head])) : -INFINITY) : top + log(sum);
      const double got = lse[int64_t{at.head} * l.total_rows + row];
      errors[s].lse = want == got ? 0.0f : float(fabs(got - want));
      errors[s].output = none ? (error == 0 ? 0.0f : 1e9f) : float(sqrt(error / size));
      if (!(errors[s].output >= 0)) errors[s].output = 1e9f;
      if (!(errors[s].lse >= 0)) errors[s].lse = 1e9f;
    }
    __syncthreads();
  }
}

/// Counts NaN elements, and folds all bits into one number for comparing runs.
template <typename T>
__global__ void digest(const T* data, int64_t count, unsigned long long* nan_count, unsigned long long* fold) {
  unsigned long long bad = 0, sum = 0;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    const float x = float(data[i]);
    bad += isnan(x);
    sum += (static_cast<unsigned long long>(__float_as_uint(x)) + 1) * (2 * i + 1);
  }
  atomicAdd(nan_count, bad);
  atomicAdd(fold, sum);
}

}  // namespace ks::bench
