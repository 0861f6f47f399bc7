// Attention in tiles over somebody else's matrix product: the tiling, the masks and the softmax are ours, the two
// products of each tile are the library's. Shared by the baselines `onednn` and `openblas`, which differ in `Gemm`.
//
// For each member, head and block of query rows: S = scale Q K^T (library), softcap, mask, online softmax, O += P V
// (library). Tiles that no row of the block sees are skipped. Keys and values are used where they lie if they are of
// the library's type; else, and for pages, the block is gathered first.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "attention_fwd.h"

namespace tiled {

using Shape = ks_attention_fwd_shape;
using Call = ks_attention_fwd_call;

constexpr int kRows = 128;    // query rows of a tile
constexpr int kKeys = 512;    // keys of a tile
constexpr float kMasked = -1e30f;  // stands for minus infinity: finite, since the build assumes finite arithmetic

inline float bf16_float(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

inline uint16_t float_bf16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<uint16_t>((word + 0x7FFF + ((word >> 16) & 1)) >> 16);
}

inline float element(const void* data, int32_t dtype, int64_t index) {
  if (dtype == KS_F32) return static_cast<const float*>(data)[index];
  if (dtype == KS_BF16) return bf16_float(static_cast<const uint16_t*>(data)[index]);
  return static_cast<float>(static_cast<const _Float16*>(data)[index]);
}

inline void store(void* data, int32_t dtype, int64_t index, float value) {
  if (dtype == KS_F32) static_cast<float*>(data)[index] = value;
  else if (dtype == KS_BF16) static_cast<uint16_t*>(data)[index] = float_bf16(value);
  else static_cast<_Float16*>(data)[index] = static_cast<_Float16>(value);
}

inline bool supports(const Shape& s) {
  const bool types = s.query_dtype == s.kv_dtype && (s.query_dtype == KS_F32 || s.query_dtype == KS_BF16 || s.query_dtype == KS_F16);
  return types && s.new_keys == 0 && s.rotary_style == KS_ROTARY_NONE && s.latent_dim == 0 && s.has_descale == 0;
}

/// One member's place in the tensors.
struct Member {
  int64_t rows, keys, query_start, key_start, output_start, lse_start;
};

inline Member member(const Call& call, const Shape& s, int b) {
  Member m{s.max_rows, s.max_keys, b * s.query_batch_stride, b * s.key_batch_stride, b * s.output_batch_stride, b * s.lse_batch_stride};
  if (s.rows_layout == KS_ROWS_PACKED) {
    const int64_t first = call.cu_rows[b];
    m.rows = call.cu_rows[b + 1] - first;
    m.query_start = first * s.query_row_stride;
    m.output_start = first * s.output_row_stride;
    m.lse_start = first * s.lse_row_stride;
  }
  if (s.kv_layout == KS_KV_PACKED) {
    m.keys = call.cu_keys[b + 1] - call.cu_keys[b];
    m.key_start = call.cu_keys[b];  // in keys: the strides differ between K and V
  }
  if (s.kv_layout == KS_KV_CACHE || s.kv_layout == KS_KV_PAGED) m.keys = call.key_lengths[b];
  return m;
}

/// Element offset of key j of member b in a tensor with these strides.
inline int64_t key_offset(const Call& call, const Shape& s, int b, int64_t j, int64_t batch_stride, int64_t row_stride) {
  if (s.kv_layout == KS_KV_PACKED) return (call.cu_keys[b] + j) * row_stride;
  if (s.kv_layout != KS_KV_PAGED) return b * batch_stride + j * row_stride;
  const int64_t page = call.page_table[static_cast<int64_t>(b) * s.page_table_stride + j / s.page_size];
  return page * batch_stride + (j % s.page_size) * row_stride;
}

/// Scratch of one thread.
template <typename T>
struct Workspace {
  std::vector<T> query, keys, values, weights;
  std::vector<float> scores, output, maximum, sum;
  explicit Workspace(const Shape& s)
      : query(static_cast<size_t>(kRows) * s.key_dim), keys(static_cast<size_t>(kKeys) * s.key_dim),
        values(static_cast<size_t>(kKeys) * s.value_dim), weights(static_cast<size_t>(kRows) * kKeys),
        scores(static_cast<size_t>(kRows) * kKeys), output(static_cast<size_t>(kRows) * s.value_dim), maximum(kRows), sum(kRows) {}
};

template <typename T>
void gather(T* to, const void* from, int32_t dtype, int64_t offset, int64_t columns) {
  if constexpr (sizeof(T) == 2) {
    std::memcpy(to, static_cast<const uint16_t*>(from) + offset, static_cast<size_t>(columns) * 2);
  } else {
    for (int64_t c = 0; c < columns; ++c) to[c] = element(from, dtype, offset + c);
  }
}

/// Keys or values of a tile: where they lie if the type is right and rows are evenly spaced, else gathered.
template <typename T>
const T* tile_rows(const Call& call, const Shape& s, int b, int head, int64_t first, int64_t count, const void* tensor,
                   int64_t batch_stride, int64_t row_stride, int64_t head_stride, int columns, std::vector<T>& copy, int64_t& stride) {
  const bool right_type = (sizeof(T) == 4) == (s.kv_dtype == KS_F32);
  if (right_type && s.kv_layout != KS_KV_PAGED) {
    stride = row_stride;
    return static_cast<const T*>(tensor) + key_offset(call, s, b, first, batch_stride, row_stride) + head * head_stride;
  }
  stride = columns;
  for (int64_t j = 0; j < count; ++j)
    gather(copy.data() + j * columns, tensor, s.kv_dtype,
           key_offset(call, s, b, first + j, batch_stride, row_stride) + head * head_stride, columns);
  return copy.data();
}

/// Softcap, mask and online softmax of one tile; P in the library's type.
template <typename T>
void soften(const Shape& s, const Member& m, int64_t first_row, int64_t rows, int64_t first_key, int64_t keys, int64_t leftpad,
            Workspace<T>& w, bool masked) {
  const int64_t shift = m.keys - m.rows;
  for (int64_t r = 0; r < rows; ++r) {
    float* scores = w.scores.data() + r * kKeys;
    if (s.softcap > 0)
      for (int64_t j = 0; j < keys; ++j) scores[j] = s.softcap * std::tanh(scores[j] / s.softcap);
    if (masked) {
      const int64_t diagonal = first_row + r + shift;
      const int64_t low = std::max(s.window_left < 0 ? leftpad : std::max<int64_t>(leftpad, diagonal - s.window_left), first_key) - first_key;
      const int64_t high = std::min<int64_t>(s.window_right < 0 ? m.keys - 1 : diagonal + s.window_right, first_key + keys - 1) - first_key;
      for (int64_t j = 0; j < std::min(low, keys); ++j) scores[j] = kMasked;
      for (int64_t j = std::max<int64_t>(high + 1, 0); j < keys; ++j) scores[j] = kMasked;
    }
    float largest = w.maximum[r];
    for (int64_t j = 0; j < keys; ++j) largest = std::max(largest, scores[j]);
    const float base = largest <= kMasked ? 0.0f : largest;
    float sum = 0;
    T* weights = w.weights.data() + r * kKeys;
    for (int64_t j = 0; j < keys; ++j) {
      const float p = std::exp(scores[j] - base);
      sum += p;
      scores[j] = p;
    }
    for (int64_t j = 0; j < keys; ++j) {
      if constexpr (sizeof(T) == 2) weights[j] = float_bf16(scores[j]);
      else weights[j] = scores[j];
    }
    const float keep = w.maximum[r] <= kMasked ? 0.0f : std::exp(w.maximum[r] - base);
    w.sum[r] = w.sum[r] * keep + sum;
    w.maximum[r] = largest;
    float* output = w.output.data() + r * s.value_dim;
    for (int c = 0; c < s.value_dim; ++c) output[c] *= keep;
  }
}

inline void finish(const Call& call, const Shape& s, const Member& m, int head, int64_t first_row, int64_t rows,
                   const float* outputs, const float* maximum, const float* sums) {
  for (int64_t r = 0; r < rows; ++r) {
    float sum = sums[r], largest = maximum[r];
    if (s.has_sinks != 0) {
      const float sink = element(call.sinks, s.query_dtype, head);
      const float top = std::max(largest, sink);
      sum = (largest <= kMasked ? 0.0f : sum * std::exp(largest - top)) + std::exp(sink - top);
      const float factor = largest <= kMasked ? 0.0f : std::exp(largest - top) / sum;
      for (int c = 0; c < s.value_dim; ++c)
        store(call.output, s.output_dtype, m.output_start + (first_row + r) * s.output_row_stride + head * s.output_head_stride + c,
              largest <= kMasked ? 0.0f : outputs[r * s.value_dim + c] * factor);
      call.lse[m.lse_start + head * s.lse_head_stride + (first_row + r) * s.lse_row_stride] = top + std::log(sum);
      continue;
    }
    const bool empty = largest <= kMasked;
    for (int c = 0; c < s.value_dim; ++c)
      store(call.output, s.output_dtype, m.output_start + (first_row + r) * s.output_row_stride + head * s.output_head_stride + c,
            empty ? 0.0f : outputs[r * s.value_dim + c] / sum);
    uint32_t minus_infinity = 0xFF800000u;
    float lse = largest + std::log(sum);
    if (empty) std::memcpy(&lse, &minus_infinity, 4);
    call.lse[m.lse_start + head * s.lse_head_stride + (first_row + r) * s.lse_row_stride] = lse;
  }
}

/// One block of query rows of one head. `Gemm::product(m, n, k, a, lda, b, ldb, b_is_transposed, scale, c, ldc, add)`.
template <typename Gemm>
void attend_block(const Call& call, const Shape& s, int b, int head, int64_t first_row, Workspace<typename Gemm::Type>& w) {
  using T = typename Gemm::Type;
  const Member m = member(call, s, b);
  const int64_t rows = std::min<int64_t>(kRows, m.rows - first_row);
  const int group = head / (s.query_heads / s.kv_heads);
  const int64_t leftpad = s.has_leftpad != 0 ? call.leftpad[b] : 0;
  std::fill(w.output.begin(), w.output.end(), 0.0f);
  std::fill(w.maximum.begin(), w.maximum.end(), kMasked);
  std::fill(w.sum.begin(), w.sum.end(), 0.0f);
  for (int64_t r = 0; r < rows; ++r)
    gather(w.query.data() + r * s.key_dim, call.query, s.query_dtype,
           m.query_start + (first_row + r) * s.query_row_stride + head * s.query_head_stride, s.key_dim);
  const int64_t shift = m.keys - m.rows;
  const int64_t low = std::max<int64_t>(s.window_left < 0 ? 0 : first_row + shift - s.window_left, leftpad);
  const int64_t high = std::min<int64_t>(s.window_right < 0 ? m.keys : first_row + rows + shift + s.window_right, m.keys);
  for (int64_t first = std::max<int64_t>(low, 0); first < high; first += kKeys) {
    const int64_t keys = std::min<int64_t>(kKeys, high - first);
    int64_t key_stride = 0, value_stride = 0;
    const T* k = tile_rows<T>(call, s, b, group, first, keys, call.key, s.key_batch_stride, s.key_row_stride, s.key_head_stride, s.key_dim, w.keys, key_stride);
    const T* v = tile_rows<T>(call, s, b, group, first, keys, call.value, s.value_batch_stride, s.value_row_stride, s.value_head_stride, s.value_dim, w.values, value_stride);
    Gemm::product(rows, keys, s.key_dim, w.query.data(), s.key_dim, k, key_stride, true, s.scale, w.scores.data(), kKeys, false);
    const bool masked = leftpad > 0 || (s.window_left >= 0 && first_row + rows - 1 + shift - s.window_left > first) ||
                        (s.window_right >= 0 && first_row + shift + s.window_right < first + keys - 1);
    soften(s, m, first_row, rows, first, keys, leftpad, w, masked);
    Gemm::product(rows, s.value_dim, keys, w.weights.data(), kKeys, v, value_stride, false, 1.0f, w.output.data(), s.value_dim, true);
  }
  finish(call, s, m, head, first_row, rows, w.output.data(), w.maximum.data(), w.sum.data());
}

template <typename Gemm>
ks_status run(const Call& call) {
  const Shape& s = *static_cast<const Shape*>(call.context.shape);
  const int64_t blocks = (s.max_rows + kRows - 1) / kRows;
  const int64_t items = static_cast<int64_t>(s.batch) * s.query_heads * blocks;
#pragma omp parallel num_threads(call.context.threads)
  {
    Workspace<typename Gemm::Type> workspace(s);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < items; ++i) {
      // Later rows see more keys under a causal mask: they come first.
      const int64_t block = blocks - 1 - i / (static_cast<int64_t>(s.batch) * s.query_heads);
      const auto pair = i % (static_cast<int64_t>(s.batch) * s.query_heads);
      const int b = static_cast<int>(pair / s.query_heads), head = static_cast<int>(pair % s.query_heads);
      if (block * kRows < member(call, s, b).rows) attend_block<Gemm>(call, s, b, head, block * kRows, workspace);
    }
  }
  return KS_OK;
}

}  // namespace tiled
