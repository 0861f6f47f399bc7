#include "operators/attention_fwd/rotary.h"

#include <cstring>

namespace ks::attention_fwd {
namespace {

/// Writes one appended key of one head into the cache.
void append_key(const View& view, int64_t b, int64_t t, int64_t g, std::byte* cache) {
  const auto columns = static_cast<size_t>(view.shape->key_dim);
  const int64_t position = view.keys[static_cast<size_t>(b)] - view.shape->new_keys + t;
  const auto from = static_cast<size_t>(view.new_key_offset(b, t, g));
  const auto to = static_cast<size_t>(view.key_offset(b, position, g));
  std::vector<double> row(columns);
  for (size_t c = 0; c < columns; ++c) row[c] = core::load_element(view.new_key, view.kv_dtype(), from + c);
  rotate_row(view, position, row.data());
  for (size_t c = 0; c < columns; ++c) core::store_element(cache, view.kv_dtype(), to + c, static_cast<float>(row[c]));
}

}  // namespace

void rotate_row(const View& view, int64_t position, double* row) {
  const int64_t half = view.shape->rotary_dim / 2;
  const bool halves = view.shape->rotary_style == KS_ROTARY_HALVES;
  for (int64_t p = 0; p < half; ++p) {
    const double cosine = view.rotary_cos[static_cast<size_t>(position * half + p)];
    const double sine = view.rotary_sin[static_cast<size_t>(position * half + p)];
    double& x = row[halves ? p : 2 * p];
    double& y = row[halves ? p + half : 2 * p + 1];
    const double old_x = x;
    x = old_x * cosine - y * sine;
    y = old_x * sine + y * cosine;
  }
}

op::Buffers append_keys(const op::Problem& problem, const op::Buffers& buffers) {
  const View view(problem, buffers);
  op::Buffers after = buffers;
  std::byte* key = after[static_cast<size_t>(view.index.key)].data();
  std::byte* value = after[static_cast<size_t>(view.index.value)].data();
  const size_t element = core::dtype_bytes(view.kv_dtype());
  for (int64_t b = 0; b < view.shape->batch; ++b)
    for (int64_t t = 0; t < view.shape->new_keys; ++t)
      for (int64_t g = 0; g < view.shape->kv_heads; ++g) {
        append_key(view, b, t, g, key);
        const int64_t position = view.keys[static_cast<size_t>(b)] - view.shape->new_keys + t;
        std::memcpy(value + static_cast<size_t>(view.value_offset(b, position, g)) * element,
                    view.new_value + static_cast<size_t>(view.new_value_offset(b, t, g)) * element,
                    static_cast<size_t>(view.shape->value_dim) * element);
      }
  return after;
}

std::vector<uint8_t> written_rows(const View& view) {
  const ks_attention_fwd_shape& shape = *view.shape;
  std::vector<uint8_t> written(static_cast<size_t>(shape.total_keys * shape.kv_heads), 0);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t t = 0; t < shape.new_keys; ++t) {
      const int64_t slot = view.key_slot(b, view.keys[static_cast<size_t>(b)] - shape.new_keys + t);
      for (int64_t g = 0; g < shape.kv_heads; ++g) written[static_cast<size_t>(slot * shape.kv_heads + g)] = 1;
    }
  return written;
}

}  // namespace ks::attention_fwd
