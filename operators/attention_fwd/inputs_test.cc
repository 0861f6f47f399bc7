// Tests of the inputs: pure, finite, as hostile as they say, and slack that holds what it should.
#include "operators/attention_fwd/inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "operators/attention_fwd/reference.h"
#include "operators/attention_fwd/rotary.h"
#include "operators/attention_fwd/test_scenarios.h"
#include "operators/fill.h"

namespace ks::attention_fwd {
namespace {

core::Scenario cpu_row(const std::string& name) {
  for (const auto& row : grid("cpu").scenarios)
    if (row.name == name) return row;
  throw Error("no row {}", name);
}

bool has_recipe(const op::Problem& problem, const std::string& name) {
  for (const auto& recipe : list_recipes(problem))
    if (recipe.name == name) return true;
  return false;
}

TEST(Inputs, AreAPureFunctionOfProblemRecipeAndSeed) {
  for (const char* name : {"causal-bf16", "ragged-pages", "append-rotary-pairs", "mla-decode"}) {
    const auto problem = make_problem(cpu_row(name));
    for (const auto& recipe : list_recipes(problem)) {
      EXPECT_EQ(inputs_of(problem, recipe.name, 1), inputs_of(problem, recipe.name, 1));
      EXPECT_NE(inputs_of(problem, recipe.name, 1), inputs_of(problem, recipe.name, 2));
    }
  }
}

TEST(Inputs, BeginWithTheMixture) {
  EXPECT_EQ(list_recipes(make_problem(made_row()))[0].name, "mixture");
  EXPECT_FALSE(list_recipes(make_problem(made_row()))[0].is_probe);
}

TEST(Inputs, RefuseAnUnknownRecipe) {
  EXPECT_THROW(inputs_of(make_problem(made_row()), "mixtrue", 1), Error);
}

TEST(Inputs, GiveFiniteAnswersInTheOutputsRangeWithNanInAllSlack) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    for (const auto& recipe : list_recipes(problem)) {
      const op::Coverage some{op::Coverage::Kind::kSampledRows, 11, 200};
      const auto expected = solve(problem, inputs_of(problem, recipe.name, 5, true), some, 2);
      const auto at = index_tensors(problem);
      const auto dtype = problem.tensors[static_cast<size_t>(at.output)].dtype;
      const float most = dtype == core::Dtype::kF16 ? 16000.0f : 1e38f;  // room for the symmetries' factor of 4
      for (const float value : expected.tensors[static_cast<size_t>(at.output)].values)
        ASSERT_LT(std::fabs(value), most) << row.name << " " << recipe.name;
      for (const float value : expected.tensors[static_cast<size_t>(at.lse)].values)
        ASSERT_TRUE(std::fabs(value) < 200 || value == -std::numeric_limits<float>::infinity())
            << row.name << " " << recipe.name << " " << value;
    }
  }
}

TEST(Inputs, DoNotLetSlackReachTheAnswer) {
  for (const char* name : {"ragged-pages", "decode-lengths", "leftpad", "append-leftpad", "mla-decode"}) {
    const auto problem = make_problem(cpu_row(name));
    const auto finite = solve(problem, inputs_of(problem, "mixture", 8, false), {}, 1);
    const auto nan = solve(problem, inputs_of(problem, "mixture", 8, true), {}, 1);
    const auto output = static_cast<size_t>(index_tensors(problem).output);
    EXPECT_EQ(finite.tensors[output].values, nan.tensors[output].values) << name;
  }
}

TEST(Inputs, FillEverySlotOfACacheThatNoCallMayRead) {
  for (const char* name : {"ragged-pages", "decode-lengths", "leftpad"}) {
    const auto problem = make_problem(cpu_row(name));
    const auto buffers = inputs_of(problem, "mixture", 8, true);
    const View view(problem, buffers);
    std::set<int64_t> readable;
    for (int64_t b = 0; b < view.shape->batch; ++b)
      for (int64_t j = view.leftpad[static_cast<size_t>(b)]; j < view.keys[static_cast<size_t>(b)]; ++j)
        readable.insert(view.key_slot(b, j));
    EXPECT_LT(static_cast<int64_t>(readable.size()), view.shape->total_keys);
    const int64_t columns = static_cast<int64_t>(view.shape->kv_heads) * view.shape->key_dim;
    for (int64_t slot = 0; slot < view.shape->total_keys; ++slot)
      for (const int64_t c : {int64_t{0}, columns - 1}) {
        const float value = core::load_element(view.key, view.kv_dtype(), static_cast<size_t>(slot * columns + c));
        ASSERT_EQ(std::isnan(value), readable.count(slot) == 0) << name << " slot " << slot;
      }
  }
}

TEST(Inputs, ShareNoPageBetweenMembers) {
  const auto problem = make_problem(cpu_row("ragged-pages"));
  const auto buffers = inputs_of(problem, "mixture", 3);
  const View view(problem, buffers);
  std::set<int32_t> owned;
  int64_t pages = 0;
  for (int64_t b = 0; b < view.shape->batch; ++b)
    for (int64_t p = 0; p < pages_of(view.keys[static_cast<size_t>(b)], view.shape->page_size); ++p, ++pages)
      owned.insert(view.pages[static_cast<size_t>(b * view.shape->page_table_stride + p)]);
  EXPECT_EQ(static_cast<int64_t>(owned.size()), pages);
  for (const int32_t page : view.pages) EXPECT_TRUE(page >= 0 && page < view.shape->page_count);
  EXPECT_NE(inputs_of(problem, "mixture", 4)[static_cast<size_t>(view.index.page_table)],
            buffers[static_cast<size_t>(view.index.page_table)]);
}

TEST(Probes, ConstantValuesGiveThatConstant) {
  for (const char* name : {"causal-fp32", "more-rows-than-keys", "mla-decode"}) {
    const auto problem = make_problem(cpu_row(name));
    const auto buffers = inputs_of(problem, "constant_values", 4);
    const View view(problem, buffers);
    const auto expected = solve(problem, buffers, {}, 2);
    const auto& output = expected.tensors[static_cast<size_t>(view.index.output)].values;
    const auto columns = static_cast<size_t>(view.shape->value_dim);
    for (int64_t i = 0; i < view.rows[0]; ++i) {
      const bool blind = view.visible(0, i).count() == 0;
      for (size_t c = 0; c < columns; ++c) {
        const float value =
            core::load_element(view.value, view.kv_dtype(), static_cast<size_t>(view.value_offset(0, 0, 0)) + c);
        ASSERT_NEAR(output[static_cast<size_t>(view.output_row(0, i, 0)) * columns + c], blind ? 0.0f : value, 1e-6)
            << name;
      }
    }
  }
}

TEST(Probes, PermutedKeysAreTheMixtureInAnotherOrder) {
  const auto problem = make_problem(cpu_row("full-fp32"));
  const auto plain = solve(problem, inputs_of(problem, "mixture", 6), {}, 2);
  const auto permuted = solve(problem, inputs_of(problem, "permuted_keys", 6), {}, 2);
  const auto output = static_cast<size_t>(index_tensors(problem).output),
             key = static_cast<size_t>(index_tensors(problem).key);
  EXPECT_NE(inputs_of(problem, "mixture", 6)[key], inputs_of(problem, "permuted_keys", 6)[key]);
  // Without a mask the order of the keys does not matter.
  for (size_t i = 0; i < plain.tensors[output].values.size(); ++i) {
    const float want = plain.tensors[output].values[i];
    ASSERT_NEAR(permuted.tensors[output].values[i], want, 2e-6 * std::fabs(want) + 1e-12);
  }
}

TEST(Probes, MaskedGarbageChangesKeysButNoAnswer) {
  for (const char* name : {"decode-window", "window-beyond-keys", "empty-members"}) {
    const auto problem = make_problem(cpu_row(name));
    if (std::string(name) == "window-beyond-keys") {
      EXPECT_FALSE(has_recipe(problem, "masked_garbage"));  // every key is seen by some row
      continue;
    }
    ASSERT_TRUE(has_recipe(problem, "masked_garbage")) << name;
    const auto mixture = inputs_of(problem, "mixture", 6), garbage = inputs_of(problem, "masked_garbage", 6);
    const auto at = index_tensors(problem);
    EXPECT_NE(mixture[static_cast<size_t>(at.key)], garbage[static_cast<size_t>(at.key)]) << name;
    EXPECT_EQ(solve(problem, mixture, {}, 1).tensors[static_cast<size_t>(at.output)].values,
              solve(problem, garbage, {}, 1).tensors[static_cast<size_t>(at.output)].values)
        << name;
  }
}

TEST(Hostile, OneDominantKeyTakesNearlyAllWeight) {
  const auto problem = make_problem(cpu_row("full-fp32"));
  const auto buffers = inputs_of(problem, "dominant_key", 9);
  const View view(problem, buffers);
  const auto expected = solve(problem, buffers, {}, 2);
  const auto& output = expected.tensors[static_cast<size_t>(view.index.output)].values;
  // The answer is close to the value of one key, for nearly every row.
  int close = 0;
  for (int64_t i = 0; i < view.rows[0]; ++i) {
    double nearest = 1e9;
    for (int64_t j = 0; j < view.keys[0]; ++j) {
      double difference = 0;
      for (size_t c = 0; c < 64; ++c) {
        const float value =
            core::load_element(view.value, view.kv_dtype(), static_cast<size_t>(view.value_offset(0, j, 0)) + c);
        difference += std::pow(value - output[static_cast<size_t>(view.output_row(0, i, 0)) * 64 + c], 2);
      }
      nearest = std::min(nearest, difference / 64);
    }
    close += nearest < 0.05;
  }
  EXPECT_GT(close, view.rows[0] * 8 / 10);
}

TEST(Hostile, OneHotBlocksShowWhatEachBlockAdds) {
  const auto problem = make_problem(cpu_row("full-fp32"));
  const auto buffers = inputs_of(problem, "one_hot_blocks", 9);
  const auto expected = solve(problem, buffers, {}, 2);
  const auto& output = expected.tensors[static_cast<size_t>(index_tensors(problem).output)].values;
  // 200 keys in blocks of 16: 13 columns hold the weight of their block, together 1; the others are 0.
  for (size_t row = 0; row < output.size() / 64; row += 37) {
    double sum = 0;
    for (size_t c = 0; c < 64; ++c) {
      sum += output[row * 64 + c];
      ASSERT_EQ(output[row * 64 + c] > 0, c < 13);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(Hostile, TinyAndHugeLeaveTheUsualRange) {
  for (const char* name : {"full-fp32", "full-fp16", "full-bf16", "e4m3-scalar"}) {
    const auto problem = make_problem(cpu_row(name));
    const auto largest = [&](const std::string& recipe) {
      const auto buffers = inputs_of(problem, recipe, 2);
      const View view(problem, buffers);
      float most = 0;
      const auto count = static_cast<size_t>(view.shape->total_keys * view.shape->kv_heads * view.shape->value_dim);
      for (size_t i = 0; i < count; ++i)
        most = std::max(most, std::fabs(core::load_element(view.value, view.kv_dtype(), i)));
      return most;
    };
    EXPECT_GT(largest("huge"), 30 * largest("dominant_key")) << name;
    EXPECT_LT(largest("tiny"), largest("dominant_key") / 7) << name;
  }
}

}  // namespace
}  // namespace ks::attention_fwd
