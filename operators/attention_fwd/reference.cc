#include "operators/attention_fwd/reference.h"

#include <cmath>
#include <limits>

#include "operators/attention_fwd/rotary.h"

namespace ks::attention_fwd {
namespace {

std::vector<double> load_row(const std::byte* data, core::Dtype dtype, int64_t offset, int64_t columns) {
  std::vector<double> row;
  for (int64_t c = 0; c < columns; ++c) row.push_back(core::load_element(data, dtype, static_cast<size_t>(offset + c)));
  return row;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

RowAnswer reference_row(const View& view, int64_t b, int64_t i, int64_t h) {
  const ks_attention_fwd_shape& shape = *view.shape;
  const int64_t g = h / view.group();
  std::vector<double> query = load_row(view.query, view.query_dtype(), view.query_offset(b, i, h), shape.key_dim);
  if (shape.rotary_style != KS_ROTARY_NONE)
    rotate_row(view, view.keys[static_cast<size_t>(b)] - shape.new_keys + i, query.data());

  const Visible visible = view.visible(b, i);
  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t j = visible.first; j <= visible.last; ++j) {
    const auto key = load_row(view.key, view.kv_dtype(), view.key_offset(b, j, g), shape.key_dim);
    double score = static_cast<double>(shape.scale) * view.score_descale(b, g) * dot(query, key);
    if (shape.softcap > 0) score = shape.softcap * std::tanh(score / shape.softcap);
    scores.push_back(score);
    largest = std::max(largest, score);
  }
  if (!view.sinks.empty()) largest = std::max(largest, static_cast<double>(view.sinks[static_cast<size_t>(h)]));

  RowAnswer answer;
  answer.output.assign(static_cast<size_t>(shape.value_dim), 0.0);
  answer.lse = -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  if (!view.sinks.empty()) sum += std::exp(view.sinks[static_cast<size_t>(h)] - largest);
  if (sum == 0) return answer;
  answer.lse = largest + std::log(sum);
  for (int64_t j = visible.first; j <= visible.last; ++j) {
    const double weight =
        std::exp(scores[static_cast<size_t>(j - visible.first)] - answer.lse) * view.value_scale(b, g);
    const auto value = load_row(view.value, view.kv_dtype(), view.value_offset(b, j, g), shape.value_dim);
    for (size_t c = 0; c < value.size(); ++c) answer.output[c] += weight * value[c];
  }
  return answer;
}

}  // namespace ks::attention_fwd
