#include "operators/attention_fwd/view.h"

#include <cstring>

namespace ks::attention_fwd {
namespace {

std::vector<int32_t> integers(const op::Buffers& buffers, int tensor) {
  if (tensor < 0) return {};
  const auto& bytes = buffers[static_cast<size_t>(tensor)];
  std::vector<int32_t> values(bytes.size() / sizeof(int32_t));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> reals(const op::Problem& problem, const op::Buffers& buffers, int tensor) {
  if (tensor < 0) return {};
  const auto& bytes = buffers[static_cast<size_t>(tensor)];
  const core::Dtype dtype = problem.tensors[static_cast<size_t>(tensor)].dtype;
  std::vector<float> values(bytes.size() / core::dtype_bytes(dtype));
  core::to_floats(bytes.data(), dtype, values.size(), values.data());
  return values;
}

const std::byte* bytes_of(const op::Buffers& buffers, int tensor) {
  return tensor < 0 ? nullptr : buffers[static_cast<size_t>(tensor)].data();
}

}  // namespace

View::View(const op::Problem& p, const op::Buffers& buffers)
    : problem(&p), shape(&shape_of(p)), index(index_tensors(p)) {
  const auto cu_rows = integers(buffers, index.cu_rows), cu_keys = integers(buffers, index.cu_keys);
  const auto lengths = integers(buffers, index.key_lengths), padding = integers(buffers, index.leftpad);
  for (size_t b = 0; b < static_cast<size_t>(shape->batch); ++b) {
    first_row.push_back(cu_rows.empty() ? static_cast<int64_t>(b) * shape->max_rows : cu_rows[b]);
    rows.push_back(cu_rows.empty() ? shape->max_rows : cu_rows[b + 1] - cu_rows[b]);
    first_key.push_back(cu_keys.empty() ? 0 : cu_keys[b]);
    int64_t count = shape->max_keys;
    if (!cu_keys.empty()) count = cu_keys[b + 1] - cu_keys[b];
    if (!lengths.empty()) count = lengths[b] + shape->new_keys;
    keys.push_back(count);
    leftpad.push_back(padding.empty() ? 0 : padding[b]);
  }
  pages = integers(buffers, index.page_table);
  sinks = reals(p, buffers, index.sinks);
  query_descale = reals(p, buffers, index.query_descale);
  key_descale = reals(p, buffers, index.key_descale);
  value_descale = reals(p, buffers, index.value_descale);
  rotary_cos = reals(p, buffers, index.rotary_cos);
  rotary_sin = reals(p, buffers, index.rotary_sin);
  query = bytes_of(buffers, index.query);
  key = bytes_of(buffers, index.key);
  value = shape->values_in_keys != 0 ? key : bytes_of(buffers, index.value);
  new_key = bytes_of(buffers, index.new_key);
  new_value = bytes_of(buffers, index.new_value);
}

int64_t View::key_slot(int64_t b, int64_t j) const {
  if (shape->kv_layout == KS_KV_PACKED) return first_key[static_cast<size_t>(b)] + j;
  if (shape->kv_layout != KS_KV_PAGED) return b * shape->max_keys + j;
  const int64_t page = pages[static_cast<size_t>(b * shape->page_table_stride + j / shape->page_size)];
  return page * shape->page_size + j % shape->page_size;
}

int64_t View::key_offset(int64_t b, int64_t j, int64_t g) const {
  const int64_t inner = shape->kv_layout == KS_KV_PAGED ? shape->page_size : shape->max_keys;
  const int64_t slot = key_slot(b, j);
  if (shape->kv_layout == KS_KV_PACKED) return slot * shape->key_row_stride + g * shape->key_head_stride;
  return slot / inner * shape->key_batch_stride + slot % inner * shape->key_row_stride + g * shape->key_head_stride;
}

int64_t View::value_offset(int64_t b, int64_t j, int64_t g) const {
  const int64_t inner = shape->kv_layout == KS_KV_PAGED ? shape->page_size : shape->max_keys;
  const int64_t slot = key_slot(b, j);
  if (shape->kv_layout == KS_KV_PACKED) return slot * shape->value_row_stride + g * shape->value_head_stride;
  return slot / inner * shape->value_batch_stride + slot % inner * shape->value_row_stride +
         g * shape->value_head_stride;
}

int64_t View::new_key_offset(int64_t b, int64_t t, int64_t g) const {
  return b * shape->new_key_batch_stride + t * shape->new_key_row_stride + g * shape->new_key_head_stride;
}

int64_t View::new_value_offset(int64_t b, int64_t t, int64_t g) const {
  return b * shape->new_value_batch_stride + t * shape->new_value_row_stride + g * shape->new_value_head_stride;
}

int64_t View::query_offset(int64_t b, int64_t i, int64_t h) const {
  const bool packed = shape->rows_layout == KS_ROWS_PACKED;
  const int64_t row = packed ? first_row[static_cast<size_t>(b)] + i : i;
  return (packed ? 0 : b * shape->query_batch_stride) + row * shape->query_row_stride + h * shape->query_head_stride;
}

double View::score_descale(int64_t b, int64_t g) const {
  double factor = 1;
  if (!query_descale.empty()) factor *= query_descale[descale_at(b, g)];
  if (!key_descale.empty()) factor *= key_descale[descale_at(b, g)];
  return factor;
}

double View::value_scale(int64_t b, int64_t g) const {
  return value_descale.empty() ? 1.0 : value_descale[descale_at(b, g)];
}

}  // namespace ks::attention_fwd
