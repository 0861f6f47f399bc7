// What tricks on attention share: binary32, dense or a contiguous cache, masks, groups of heads; everything else is
// unsupported. A trick says which keys it looks at.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention_fwd.h"

namespace {

inline const ks_attention_fwd_shape& shape_of(const ks_attention_fwd_call* call) {
  return *static_cast<const ks_attention_fwd_shape*>(call->context.shape);
}

/// One row of one head: where its data lie and which keys [begin, end) it may see.
struct Row {
  const float *query, *key, *value;
  float *output, *lse;
  int64_t key_stride, value_stride;
  int begin, end, key_dim, value_dim;
  float scale;
};

/// Attends to the keys for which `looks_at(row, key)` is true.
template <typename LooksAt>
void attend(const Row& row, const LooksAt& looks_at) {
  std::vector<double> sum(static_cast<size_t>(row.value_dim));
  double most = -std::numeric_limits<double>::infinity(), total = 0;
  for (int j = row.begin; j < row.end; ++j) {
    if (!looks_at(row, j)) continue;
    double score = 0;
    for (int c = 0; c < row.key_dim; ++c) score += static_cast<double>(row.query[c]) * row.key[j * row.key_stride + c];
    score *= row.scale;
    const double high = std::fmax(most, score), shrink = std::exp(most - high), weight = std::exp(score - high);
    total = total * shrink + weight;
    for (int c = 0; c < row.value_dim; ++c)
      sum[static_cast<size_t>(c)] = sum[static_cast<size_t>(c)] * shrink + weight * row.value[j * row.value_stride + c];
    most = high;
  }
  for (int c = 0; c < row.value_dim; ++c)
    row.output[c] = total > 0 ? static_cast<float>(sum[static_cast<size_t>(c)] / total) : 0.0f;
  *row.lse = static_cast<float>(most + std::log(total));
}

template <typename Do>
void for_each_row(const ks_attention_fwd_call* call, const Do& act) {
  const auto& s = shape_of(call);
  for (int b = 0; b < s.batch; ++b) {
    const int keys = s.kv_layout == KS_KV_CACHE ? call->key_lengths[b] : s.max_keys;
    for (int i = 0; i < s.max_rows; ++i) {
      const int diagonal = i + keys - s.max_rows;
      const int begin = s.window_left < 0 ? 0 : std::max(0, diagonal - s.window_left);
      const int end = s.window_right < 0 ? keys : std::min(keys, diagonal + s.window_right + 1);
      for (int h = 0; h < s.query_heads; ++h) {
        const int g = h / (s.query_heads / s.kv_heads);
        act(Row{static_cast<const float*>(call->query) + b * s.query_batch_stride + i * s.query_row_stride +
                    h * s.query_head_stride,
                static_cast<const float*>(call->key) + b * s.key_batch_stride + g * s.key_head_stride,
                static_cast<const float*>(call->value) + b * s.value_batch_stride + g * s.value_head_stride,
                static_cast<float*>(call->output) + b * s.output_batch_stride + i * s.output_row_stride +
                    h * s.output_head_stride,
                call->lse + b * s.lse_batch_stride + h * s.lse_head_stride + i * s.lse_row_stride, s.key_row_stride,
                s.value_row_stride, begin, end, s.key_dim, s.value_dim, s.scale});
      }
    }
  }
}

}  // namespace

extern "C" ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = {};
  const bool simple = shape->query_dtype == KS_F32 && shape->rows_layout == KS_ROWS_DENSE &&
                      (shape->kv_layout == KS_KV_DENSE || shape->kv_layout == KS_KV_CACHE) && shape->latent_dim == 0 &&
                      shape->new_keys == 0 && shape->rotary_style == KS_ROTARY_NONE && !shape->has_leftpad &&
                      !shape->has_sinks && shape->softcap == 0;
  return simple ? KS_OK : KS_UNSUPPORTED;
}
extern "C" ks_status ks_plan(const ks_attention_fwd_shape*, void*) {
  return KS_OK;
}
