// Where the rows and keys of a member of the batch lie, which keys its rows see, and the appending of new keys.
#pragma once
#include <vector>

#include "elements.h"

namespace ks::attention_cpu {

using Shape = ks_attention_fwd_shape;
using Call = ks_attention_fwd_call;

struct Member {
  int64_t batch = 0;
  int64_t rows = 0, keys = 0;
  int64_t first_row = 0, first_key = 0;  ///< in packed tensors
  int64_t leftpad = 0;
  int64_t position = 0;  ///< of the first row, for rotary
};

/// A half-open interval of keys, never negative in length.
struct Interval {
  int64_t begin, end;
};

inline Member member_of(const Call& call, const Shape& s, int64_t b) {
  Member m;
  m.batch = b;
  m.rows = s.max_rows;
  m.keys = s.max_keys;
  if (s.rows_layout == KS_ROWS_PACKED) {
    m.first_row = call.cu_rows[b];
    m.rows = call.cu_rows[b + 1] - m.first_row;
  }
  if (s.kv_layout == KS_KV_PACKED) {
    m.first_key = call.cu_keys[b];
    m.keys = call.cu_keys[b + 1] - m.first_key;
  }
  if (s.kv_layout == KS_KV_CACHE || s.kv_layout == KS_KV_PAGED) {
    m.position = call.key_lengths[b];
    m.keys = m.position + s.new_keys;
  }
  if (s.has_leftpad != 0) m.leftpad = call.leftpad[b];
  return m;
}

/// The keys that row i sees.
inline Interval visible_keys(const Shape& s, const Member& m, int64_t i) {
  const int64_t diagonal = i + m.keys - m.rows;
  const int64_t low = s.window_left < 0 ? 0 : diagonal - s.window_left;
  const int64_t high = s.window_right < 0 ? m.keys : diagonal + s.window_right + 1;
  const int64_t begin = std::max({low, m.leftpad, int64_t{0}});
  return {begin, std::max(begin, std::min(high, m.keys))};
}

/// The keys that rows first .. last see between them. Both ends move forward with the row, so there is no gap.
inline Interval visible_keys(const Shape& s, const Member& m, int64_t first, int64_t last) {
  const Interval a = visible_keys(s, m, first), b = visible_keys(s, m, last);
  return {a.begin, std::max(a.begin, b.end)};
}

inline int64_t row_of_cache(const Call& call, const Shape& s, const Member& m, int64_t j, int64_t batch_stride,
                            int64_t row_stride) {
  if (s.kv_layout != KS_KV_PAGED) return m.batch * batch_stride + (m.first_key + j) * row_stride;
  const int64_t page = call.page_table[m.batch * s.page_table_stride + j / s.page_size];
  return page * batch_stride + (j % s.page_size) * row_stride;
}

inline int64_t key_at(const Call& call, const Shape& s, const Member& m, int64_t g, int64_t j) {
  return row_of_cache(call, s, m, j, s.key_batch_stride, s.key_row_stride) + g * s.key_head_stride;
}

inline int64_t value_at(const Call& call, const Shape& s, const Member& m, int64_t g, int64_t j) {
  return row_of_cache(call, s, m, j, s.value_batch_stride, s.value_row_stride) + g * s.value_head_stride;
}

/// Rotates the leading columns of a row to its position.
inline void rotate(const Call& call, const Shape& s, int64_t position, float* row) {
  const bool interleaved = s.rotary_style == KS_ROTARY_INTERLEAVED;
  const int half = s.rotary_dim / 2;
  for (int c = 0; c < half; ++c) {
    float cosine, sine;
    load_row(call.rotary_cos, s.query_dtype, position * s.rotary_row_stride + c, 1, &cosine);
    load_row(call.rotary_sin, s.query_dtype, position * s.rotary_row_stride + c, 1, &sine);
    float& x = row[interleaved ? 2 * c : c];
    float& y = row[interleaved ? 2 * c + 1 : c + half];
    const float turned = x * cosine - y * sine;
    y = x * sine + y * cosine;
    x = turned;
  }
}

/// Query row i of head h as float, rotated. `out` holds key_dim columns.
inline void load_query(const Call& call, const Shape& s, const Member& m, int64_t i, int64_t h, float* out) {
  const int64_t at = m.first_row + i;
  if (s.latent_dim > 0)
    load_row(call.query_latent, s.query_dtype,
             m.batch * s.query_latent_batch_stride + at * s.query_latent_row_stride + h * s.query_latent_head_stride,
             s.latent_dim, out);
  load_row(call.query, s.query_dtype,
           m.batch * s.query_batch_stride + at * s.query_row_stride + h * s.query_head_stride, s.key_dim - s.latent_dim,
           out + s.latent_dim);
  if (s.rotary_style != KS_ROTARY_NONE) rotate(call, s, m.position + i, out);
}

/// Writes the new keys (rotated) and values of a member behind those that it has. `row` holds a row of either.
inline void append(const Call& call, const Shape& s, const Member& m, float* row) {
  const size_t bytes = element_bytes(s.kv_dtype);
  for (int64_t t = 0; t < s.new_keys; ++t)
    for (int64_t g = 0; g < s.kv_heads; ++g) {
      const int64_t from_key = m.batch * s.new_key_batch_stride + t * s.new_key_row_stride + g * s.new_key_head_stride;
      const int64_t from_value =
          m.batch * s.new_value_batch_stride + t * s.new_value_row_stride + g * s.new_value_head_stride;
      const int64_t key = key_at(call, s, m, g, m.position + t), value = value_at(call, s, m, g, m.position + t);
      const auto copy = [&](void* to, int64_t to_at, const void* from, int64_t from_at, int64_t columns) {
        std::memcpy(static_cast<char*>(to) + static_cast<size_t>(to_at) * bytes,
                    static_cast<const char*>(from) + static_cast<size_t>(from_at) * bytes,
                    static_cast<size_t>(columns) * bytes);
      };
      copy(call.key, key, call.new_key, from_key, s.key_dim);
      if (s.values_in_keys == 0) copy(call.value, value, call.new_value, from_value, s.value_dim);
      if (s.rotary_style == KS_ROTARY_NONE) continue;
      load_row(call.new_key, s.kv_dtype, from_key, s.rotary_dim, row);
      rotate(call, s, m.position + t, row);
      store_row(call.key, s.kv_dtype, key, s.rotary_dim, row, 1.0f);
    }
}

}  // namespace ks::attention_cpu
