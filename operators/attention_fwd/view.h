// A problem with its buffers, ready to be read: where each member's rows and keys lie.
#pragma once

#include <cstdint>
#include <vector>

#include "operators/attention_fwd/layout.h"

namespace ks::attention_fwd {

/// Lengths and tables as the buffers hold them. Offsets are in elements of the tensor they belong to.
struct View {
  View(const op::Problem& problem, const op::Buffers& buffers);

  const op::Problem* problem;
  const ks_attention_fwd_shape* shape;
  TensorIndex index;
  std::vector<int64_t> first_row;  ///< packed rows: where a member begins; dense: b * max_rows
  std::vector<int64_t> first_key;  ///< packed keys: where a member begins
  std::vector<int64_t> rows;       ///< query rows of each member
  std::vector<int64_t> keys;       ///< keys of each member, appended ones included
  std::vector<int64_t> leftpad;    ///< 0 where there is no padding
  std::vector<int32_t> pages;      ///< the page table
  std::vector<float> sinks, query_descale, key_descale, value_descale, rotary_cos, rotary_sin;
  const std::byte *query = nullptr, *key = nullptr, *value = nullptr, *new_key = nullptr, *new_value = nullptr;

  int64_t group() const { return shape->query_heads / shape->kv_heads; }
  Visible visible(int64_t b, int64_t i) const {
    return visible_keys(*shape, i, rows[static_cast<size_t>(b)], keys[static_cast<size_t>(b)],
                        leftpad[static_cast<size_t>(b)]);
  }
  /// The row of the key tensor (all dimensions but heads and columns taken together) that holds key j of member b.
  int64_t key_slot(int64_t b, int64_t j) const;
  int64_t key_offset(int64_t b, int64_t j, int64_t g) const;
  int64_t value_offset(int64_t b, int64_t j, int64_t g) const;
  int64_t new_key_offset(int64_t b, int64_t t, int64_t g) const;
  int64_t new_value_offset(int64_t b, int64_t t, int64_t g) const;
  int64_t query_offset(int64_t b, int64_t i, int64_t h) const;
  /// The row of output and lse, in logical order.
  int64_t output_row(int64_t b, int64_t i, int64_t h) const {
    return (first_row[static_cast<size_t>(b)] + i) * shape->query_heads + h;
  }
  /// The factors of scores and of values for a kv head of a member: 1 without descales.
  double score_descale(int64_t b, int64_t g) const;
  double value_scale(int64_t b, int64_t g) const;
  core::Dtype query_dtype() const { return static_cast<core::Dtype>(shape->query_dtype); }
  core::Dtype kv_dtype() const { return static_cast<core::Dtype>(shape->kv_dtype); }

 private:
  size_t descale_at(int64_t b, int64_t g) const {
    return static_cast<size_t>(b * shape->descale_batch_stride + g * shape->descale_head_stride);
  }
};

}  // namespace ks::attention_fwd
