#include "operators/attention_fwd/counts.h"

#include <algorithm>

namespace ks::attention_fwd {

Counts count(const Spec& spec, const ks_attention_fwd_shape& shape) {
  Counts counts;
  double seeing_rows = 0, old_keys = 0;
  for (size_t b = 0; b < spec.rows.size(); ++b) {
    const int64_t rows = spec.rows[b], keys = spec.keys[b];
    const int64_t leftpad = spec.has_leftpad ? spec.leftpad[b] : 0;
    for (int64_t i = 0; i < rows; ++i) {
      const auto pairs = static_cast<double>(visible_keys(shape, i, rows, keys, leftpad).count());
      counts.visible_pairs += pairs;
      seeing_rows += pairs > 0 ? 1 : 0;
    }
    // Appended keys are counted on their own: read as new, written to the cache.
    Visible cached = visible_to_any(shape, rows, keys, leftpad);
    cached.last = std::min(cached.last, keys - 1 - shape.new_keys);
    old_keys += static_cast<double>(cached.count());
  }
  const auto query_bytes = static_cast<double>(core::dtype_bytes(spec.query_dtype));
  const auto kv_bytes = static_cast<double>(core::dtype_bytes(spec.kv_dtype));
  const auto output_bytes = static_cast<double>(core::dtype_bytes(spec.output_dtype));
  const double heads = spec.query_heads, kv_heads = spec.kv_heads;
  const double key_columns = spec.key_dim + (spec.is_latent ? 0 : spec.value_dim);
  const double appended = static_cast<double>(spec.batch) * shape.new_keys;
  counts.flops = 2.0 * (spec.key_dim + spec.value_dim) * heads * counts.visible_pairs;
  counts.bytes = (old_keys + 2 * appended) * kv_heads * key_columns * kv_bytes +
                 seeing_rows * heads * spec.key_dim * query_bytes +
                 static_cast<double>(shape.total_rows) * heads * (spec.value_dim * output_bytes + sizeof(float));
  return counts;
}

}  // namespace ks::attention_fwd
