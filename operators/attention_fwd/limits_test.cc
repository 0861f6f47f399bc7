// Tests of the limits: an honest kernel in low precision passes on every recipe, one that drops keys does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>

#include "operators/attention_fwd/reference.h"
#include "operators/attention_fwd/rotary.h"
#include "operators/attention_fwd/test_scenarios.h"
#include "operators/output_rows.h"

namespace ks::attention_fwd {
namespace {

using core::Dtype;

float rounded(float value, Dtype dtype) {
  float word;
  core::store_element(&word, dtype, 0, value);
  return core::load_element(&word, dtype, 0);
}

/// How the kernel below departs from a perfect one.
struct Flaws {
  double dropped_share = 0;  ///< of the visible keys, from the left
  int shift_right = 0;       ///< the mask lets so many more keys through on the right
};

/// What released kernels do: binary32 scores and sums, unnormalised weights rounded to the cache's type (e4m3 weights
/// scaled by 2^8, as the largest is then 256), a rounded output.
class HonestKernel {
 public:
  HonestKernel(const op::Problem& problem, const op::Buffers& buffers, Flaws flaws, const std::vector<uint8_t>& wanted)
      : view_(problem, buffers),
        shape_(*view_.shape),
        flaws_(flaws),
        output_(problem.tensors[static_cast<size_t>(view_.index.output)].bytes),
        lse_(problem.tensors[static_cast<size_t>(view_.index.lse)].bytes) {
    for (int64_t b = 0; b < shape_.batch; ++b)
      for (int64_t i = 0; i < view_.rows[static_cast<size_t>(b)]; ++i)
        for (int64_t h = 0; h < shape_.query_heads; ++h)
          if (wanted.empty() || wanted[static_cast<size_t>(view_.output_row(b, i, h))] != 0) run_row(b, i, h);
  }
  const std::vector<std::byte>& output() const { return output_; }
  const std::vector<std::byte>& lse() const { return lse_; }

 private:
  std::vector<float> load(const std::byte* data, Dtype dtype, int64_t offset, int64_t columns) const {
    std::vector<float> row(static_cast<size_t>(columns));
    core::to_floats(data + static_cast<size_t>(offset) * core::dtype_bytes(dtype), dtype, row.size(), row.data());
    return row;
  }

  std::vector<float> load_query(int64_t b, int64_t i, int64_t h) const {
    auto query = load(view_.query, view_.query_dtype(), view_.query_offset(b, i, h), shape_.key_dim);
    if (shape_.rotary_style == KS_ROTARY_NONE) return query;
    std::vector<double> wide(query.begin(), query.end());
    rotate_row(view_, view_.keys[static_cast<size_t>(b)] - shape_.new_keys + i, wide.data());
    for (size_t c = 0; c < query.size(); ++c) query[c] = rounded(static_cast<float>(wide[c]), view_.query_dtype());
    return query;
  }

  /// The type that weights are rounded to; a cache of e4m3 under a 16-bit query is widened to the query's type.
  Dtype weight_type() const { return view_.query_dtype(); }

  void run_row(int64_t b, int64_t i, int64_t h) {
    const int64_t g = h / view_.group();
    const auto query = load_query(b, i, h);
    Visible visible = view_.visible(b, i);
    visible.last = std::min(visible.last + flaws_.shift_right, view_.keys[static_cast<size_t>(b)] - 1);
    visible.first += static_cast<int64_t>(flaws_.dropped_share * static_cast<double>(visible.count()));
    const float scale = shape_.scale * static_cast<float>(view_.score_descale(b, g));
    float largest = -std::numeric_limits<float>::infinity(), sum = 0;
    std::vector<float> scores, output(static_cast<size_t>(shape_.value_dim), 0.0f);
    for (int64_t j = visible.first; j <= visible.last; ++j) {
      const auto key = load(view_.key, view_.kv_dtype(), view_.key_offset(b, j, g), shape_.key_dim);
      float dot = 0;
      for (size_t c = 0; c < key.size(); ++c) dot += query[c] * key[c];
      float score = dot * scale;
      if (shape_.softcap > 0) score = shape_.softcap * std::tanh(score / shape_.softcap);
      scores.push_back(score);
      largest = std::max(largest, score);
    }
    const float lift = weight_type() == Dtype::kE4m3 ? 256.0f : 1.0f;
    for (int64_t j = visible.first; j <= visible.last; ++j) {
      const float weight = std::exp(scores[static_cast<size_t>(j - visible.first)] - largest);
      sum += weight;
      const float used = rounded(weight * lift, weight_type());
      const auto value = load(view_.value, view_.kv_dtype(), view_.value_offset(b, j, g), shape_.value_dim);
      for (size_t c = 0; c < value.size(); ++c) output[c] += used * value[c];
    }
    if (!view_.sinks.empty()) {
      const float sink = view_.sinks[static_cast<size_t>(h)];
      if (scores.empty()) largest = sink;
      sum += std::exp(sink - largest);
    }
    const float factor = sum > 0 ? static_cast<float>(view_.value_scale(b, g)) / (sum * lift) : 0.0f;
    store(b, i, h, output, factor, sum > 0 ? largest + std::log(sum) : -std::numeric_limits<float>::infinity());
  }

  void store(int64_t b, int64_t i, int64_t h, const std::vector<float>& output, float factor, float lse) {
    const auto row = static_cast<size_t>(view_.output_row(b, i, h));
    for (size_t c = 0; c < output.size(); ++c)
      core::store_element(output_.data(), static_cast<Dtype>(shape_.output_dtype), row * output.size() + c,
                          output[c] * factor);
    const bool packed = shape_.rows_layout == KS_ROWS_PACKED;
    const int64_t at = packed ? (view_.first_row[static_cast<size_t>(b)] + i) * shape_.lse_row_stride
                              : b * shape_.lse_batch_stride + i * shape_.lse_row_stride;
    core::store_element(lse_.data(), Dtype::kF32, static_cast<size_t>(at + h * shape_.lse_head_stride), lse);
  }

  View view_;
  const ks_attention_fwd_shape& shape_;
  Flaws flaws_;
  std::vector<std::byte> output_, lse_;
};

struct Outcome {
  op::RowComparison output, lse;
};

Outcome judge(const op::Problem& problem, const op::Buffers& buffers, Flaws flaws) {
  const auto after = shape_of(problem).new_keys > 0 ? append_keys(problem, buffers) : buffers;
  const auto expected = solve(problem, buffers, {op::Coverage::Kind::kSampledRows, 7, 100}, 2);
  const auto at = index_tensors(problem);
  const HonestKernel kernel(problem, after, flaws, expected.tensors[static_cast<size_t>(at.output)].known);
  return {op::compare_rows(problem, at.output, {}, expected.tensors[static_cast<size_t>(at.output)],
                           kernel.output().data()),
          op::compare_rows(problem, at.lse, {}, expected.tensors[static_cast<size_t>(at.lse)], kernel.lse().data())};
}

/// The large rows of the grid are left to the evaluator's own tests; here it is the recipes that are tried.
bool is_small(const op::Problem& problem) {
  return problem.flops < 6e7;
}

TEST(Limits, AcceptAnHonestKernelOnEveryRecipe) {
  std::map<std::string, double> worst;
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    if (!is_small(problem)) continue;
    for (const auto& recipe : AttentionFwd().recipes(problem)) {
      const auto outcome = judge(problem, inputs_of(problem, recipe.name, 41), {});
      EXPECT_EQ(outcome.output.failures, 0) << row.name << " " << recipe.name << ": " << outcome.output.where;
      EXPECT_EQ(outcome.lse.failures, 0) << row.name << " " << recipe.name << ": " << outcome.lse.where;
      const auto at = index_tensors(problem);
      double& o = worst[row.values.at("dtype") + " output"];
      o = std::max(o, outcome.output.worst / problem.tensors[static_cast<size_t>(at.output)].limit);
      double& l = worst[row.values.at("dtype") + " lse"];
      l = std::max(l, outcome.lse.worst / problem.tensors[static_cast<size_t>(at.lse)].limit);
    }
  }
  // An honest kernel should not need the whole limit either: there is room for other orders of summation.
  for (const auto& [what, share] : worst) {
    std::printf("  largest share of the limit, %s: %.2f\n", what.c_str(), share);
    EXPECT_LT(share, 0.8) << what;
  }
}

TEST(Limits, RefuseAKernelThatDropsATenthOfTheKeys) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    if (!is_small(problem) || shape_of(problem).max_keys < 40 || row.name == "narrow") continue;  // a tenth of one key
    EXPECT_GT(judge(problem, inputs_of(problem, "mixture", 43), {.dropped_share = 0.1}).output.failures, 0) << row.name;
  }
}

TEST(Limits, RefuseAMaskThatIsOffByOne) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    const auto& shape = shape_of(problem);
    if (!is_small(problem) || shape.window_right != 0 || shape.max_rows < 16 || shape.max_keys < 16) continue;
    EXPECT_GT(judge(problem, inputs_of(problem, "mixture", 44), {.shift_right = 1}).output.failures, 0) << row.name;
  }
}

}  // namespace
}  // namespace ks::attention_fwd
