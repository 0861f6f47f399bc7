// What the families' plans have in common: a shape as an attention problem, and maps of its tensors. Host only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "attention_fwd.h"
#include "kernels/attention/problem.h"
#include "kernels/fa3_hopper/device.h"

namespace ks::fa3 {

/// Whether every stride is one that the copy engine takes: a multiple of `step` elements, neither negative nor huge.
inline bool are_box_strides(std::initializer_list<int64_t> strides, int64_t step) {
  for (const int64_t stride : strides) {
    if (stride < 0 || stride % step != 0 || stride >= (int64_t{1} << 38)) return false;
  }
  return true;
}

/// Sizes that fit the kernels' arithmetic.
inline bool are_usual_sizes(const ks_attention_fwd_shape& s) {
  return s.batch >= 0 && s.query_heads > 0 && s.kv_heads > 0 && s.query_heads % s.kv_heads == 0 && s.key_dim > 0 &&
         s.value_dim > 0 && s.total_rows < INT32_MAX && s.total_keys < INT32_MAX && s.scale > 0.0f &&
         s.softcap >= 0.0f && s.max_rows < (1 << 24) && s.max_keys < (1 << 24);
}

/// The most query heads (a divisor of the group) whose rows fit in one tile of `most` rows together.
inline int heads_per_tile(int ratio, int most) {
  for (int heads = std::min(ratio, most); heads > 1; --heads) {
    if (ratio % heads == 0) return heads;
  }
  return 1;
}

/// A map of (columns, dim1, dim2, dim3), strides in elements of `bytes` each, boxes of 128 bytes x box1 x box2 x 1.
inline MapSpec box_map(int bytes, int64_t columns, int64_t dim1, int64_t dim2, int64_t dim3, int64_t stride1,
                       int64_t stride2, int64_t stride3, int box1, int box2) {
  // A dimension of one is never stepped along, but its stride must still be a valid one.
  const auto distance = [&](int64_t stride) { return static_cast<cuuint64_t>(std::max<int64_t>(stride * bytes, 16)); };
  const auto count = [](int64_t n) { return static_cast<cuuint64_t>(std::max<int64_t>(n, 1)); };
  return {{count(columns), count(dim1), count(dim2), count(dim3)},
          {distance(stride1), distance(stride2), distance(stride3)},
          {static_cast<cuuint32_t>(128 / bytes), static_cast<cuuint32_t>(box1), static_cast<cuuint32_t>(box2), 1}};
}

/// A map of query or output rows: (column, head, row, member), boxes of `heads` x `positions`.
inline MapSpec row_map(const ks_attention_fwd_shape& s, int bytes, int columns, int64_t head_stride, int64_t row_stride,
                       int64_t batch_stride, int heads, int positions) {
  const bool packed = s.rows_layout == KS_ROWS_PACKED;
  return box_map(bytes, columns, s.query_heads, packed ? s.total_rows : s.max_rows, packed ? 1 : s.batch, head_stride,
                 row_stride, packed ? 0 : batch_stride, heads, positions);
}

/// A map of keys or values: (column, key, kv head, member or page), boxes of `keys`.
inline MapSpec cache_map(const ks_attention_fwd_shape& s, int bytes, int columns, int64_t row_stride,
                         int64_t head_stride, int64_t batch_stride, int keys) {
  int64_t rows = s.max_keys;
  int64_t members = s.batch;
  if (s.kv_layout == KS_KV_PACKED) rows = s.total_keys, members = 1;
  if (s.kv_layout == KS_KV_PAGED) rows = s.page_size, members = s.page_count;
  return box_map(bytes, columns, rows, s.kv_heads, members, row_stride, head_stride, batch_stride, keys, 1);
}

/// The problem without pointers, and with `ratio` query heads packed into a tile's rows.
inline attention::AttentionProblem problem_of(const ks_attention_fwd_shape& s, int ratio) {
  const int64_t reach = int64_t{s.max_rows} + s.max_keys;  // a window as wide as this hides nothing
  const auto window = [&](int keys) { return keys < 0 || keys >= reach ? attention::kUnlimited : keys; };
  attention::AttentionProblem problem = {};
  problem.batch = s.batch;
  problem.kv_heads = s.kv_heads;
  problem.ratio = ratio;
  problem.max_rows = s.max_rows;
  problem.max_keys = s.max_keys;
  problem.value_dim = s.value_dim;
  problem.window_left = window(s.window_left);
  problem.window_right = window(s.window_right);
  problem.rows_packed = s.rows_layout == KS_ROWS_PACKED;
  problem.key_layout = static_cast<attention::KeyLayout>(s.kv_layout);  // same order as KS_KV_*
  problem.page_size = s.page_size;
  problem.page_table_stride = s.page_table_stride;
  problem.scale = s.scale;
  problem.softcap = s.softcap;
  problem.output_batch_stride = s.output_batch_stride;
  problem.output_row_stride = s.output_row_stride;
  problem.output_head_stride = s.output_head_stride;
  problem.lse_batch_stride = s.lse_batch_stride;
  problem.lse_row_stride = s.lse_row_stride;
  problem.lse_head_stride = s.lse_head_stride;
  return problem;
}

/// Fills in what a call brings.
inline void set_call_pointers(attention::AttentionProblem& problem, const ks_attention_fwd_call& call) {
  problem.cu_rows = call.cu_rows;
  problem.cu_keys = call.cu_keys;
  problem.key_lengths = call.key_lengths;
  problem.page_table = call.page_table;
  problem.sinks = call.sinks;
  problem.output = call.output;
  problem.lse = call.lse;
}

}  // namespace ks::fa3
