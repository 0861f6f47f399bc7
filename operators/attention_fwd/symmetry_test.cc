// Tests of the symmetries: the known answer, moved, is the answer to the moved inputs.
#include "operators/attention_fwd/symmetry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "operators/apply_symmetry.h"
#include "operators/attention_fwd/reference.h"
#include "operators/attention_fwd/test_scenarios.h"
#include "operators/attention_fwd/view.h"
#include "operators/output_rows.h"

namespace ks::attention_fwd {
namespace {

/// Expected values as the bytes that a perfect float32 implementation would leave.
double worst_difference(const op::Tensor& tensor, const op::Expected::Rows& fresh, const op::Expected::Rows& moved) {
  EXPECT_EQ(fresh.unchanged, moved.unchanged) << tensor.name;
  EXPECT_EQ(fresh.values.size(), moved.values.size()) << tensor.name;
  const auto columns = static_cast<size_t>(op::column_count(tensor));
  double worst = 0;
  for (size_t row = 0; row < fresh.values.size() / columns; ++row) {
    if (!fresh.unchanged.empty() && fresh.unchanged[row] != 0) continue;
    double difference = 0, norm = 0;
    for (size_t c = row * columns; c < (row + 1) * columns; ++c) {
      if (fresh.values[c] == moved.values[c]) continue;  // infinities
      difference += std::pow(static_cast<double>(fresh.values[c]) - moved.values[c], 2);
    }
    for (size_t c = row * columns; c < (row + 1) * columns; ++c)
      norm += std::pow(static_cast<double>(moved.values[c]), 2);
    if (difference > 0) worst = std::max(worst, std::sqrt(difference / norm));
  }
  return worst;
}

TEST(Symmetry, LeavesTheAnswerOfAFreshSolveOnEveryRowOfTheCpuGrid) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    for (const uint64_t seed : {1, 2}) {
      const auto buffers = inputs_of(problem, "mixture", 30 + seed, seed == 2);
      const auto symmetry = random_symmetry(problem, buffers, seed);
      const auto fresh = solve(problem, op::transform_buffers(problem, symmetry, buffers), {}, 2);
      const auto moved = op::transform_expected(problem, symmetry, solve(problem, buffers, {}, 2));
      for (size_t t = 0; t < problem.tensors.size(); ++t)
        EXPECT_LT(worst_difference(problem.tensors[t], fresh.tensors[t], moved.tensors[t]), 3e-7)
            << row.name << " " << problem.tensors[t].name;
    }
  }
}

TEST(Symmetry, KeepsInputsExactUnderEveryRecipe) {
  // Moving there and reading back must lose no bit: factors are powers of two in the range of the type.
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    for (const auto& recipe : AttentionFwd().recipes(problem)) {
      const auto buffers = inputs_of(problem, recipe.name, 3);
      const auto symmetry = random_symmetry(problem, buffers, 4);
      for (const auto& factors : symmetry.factors) {
        const auto& tensor = problem.tensors[static_cast<size_t>(factors.tensor)];
        if (tensor.role == op::Role::kOutput) continue;
        std::vector<std::byte> moved(tensor.bytes);
        op::transform_tensor(problem, factors.tensor, symmetry, buffers[static_cast<size_t>(factors.tensor)].data(),
                             moved.data());
        const auto move = op::move_of(problem, factors.tensor, symmetry);
        op::RowWalk walk(tensor, move, 0);
        for (size_t r = 0; r < static_cast<size_t>(op::row_count(tensor)); ++r, walk.next())
          for (size_t c = r % 7; c < factors.factor.size(); c += 7) {
            const auto source = static_cast<size_t>(walk.now().old_offset + move.source.back()[c]);
            const float old =
                core::load_element(buffers[static_cast<size_t>(factors.tensor)].data(), tensor.dtype, source);
            const float now =
                core::load_element(moved.data(), tensor.dtype, static_cast<size_t>(walk.now().offset) + c);
            ASSERT_TRUE(now == old * factors.factor[c] && std::isfinite(now))
                << row.name << " " << recipe.name << " " << tensor.name;
          }
      }
    }
  }
}

TEST(Symmetry, MovesEveryLargeInput) {
  for (const auto& row : grid("demo").scenarios) {
    const auto problem = make_problem(row);
    const auto buffers = inputs_of(problem, "mixture", 3);
    const auto moved = op::transform_buffers(problem, random_symmetry(problem, buffers, 9), buffers);
    const auto at = index_tensors(problem);
    for (const int tensor : {at.query, at.key, at.value})
      EXPECT_NE(moved[static_cast<size_t>(tensor)], buffers[static_cast<size_t>(tensor)]) << row.name;
    const auto other = op::transform_buffers(problem, random_symmetry(problem, buffers, 10), buffers);
    EXPECT_NE(moved[static_cast<size_t>(at.key)], other[static_cast<size_t>(at.key)]);
  }
}

TEST(Symmetry, ScalesValuesOnlyWhereNoBitCanBeLost) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    const auto symmetry = random_symmetry(problem, inputs_of(problem, "mixture", 1), 2);
    const auto at = index_tensors(problem);
    std::set<float> magnitudes;
    for (const auto& factors : symmetry.factors)
      if (factors.tensor == at.output)
        for (const float factor : factors.factor) magnitudes.insert(std::fabs(factor));
    if (shape_of(problem).kv_dtype == KS_E4M3 || shape_of(problem).kv_dtype == KS_F16)
      EXPECT_EQ(magnitudes, std::set<float>{1.0f}) << row.name;
    else
      EXPECT_GT(magnitudes.size(), 1u) << row.name;
  }
}

TEST(Symmetry, KeepsPairsOfColumnsTogetherUnderRotary) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    const auto& shape = shape_of(problem);
    if (shape.rotary_dim == 0) continue;
    const auto at = index_tensors(problem);
    const auto move = op::move_of(problem, at.query, random_symmetry(problem, inputs_of(problem, "mixture", 1), 2));
    const int32_t half = shape.rotary_dim / 2;
    for (int32_t p = 0; p < half; ++p) {
      const bool halves = shape.rotary_style == KS_ROTARY_HALVES;
      const auto x = static_cast<size_t>(halves ? p : 2 * p), y = static_cast<size_t>(halves ? p + half : 2 * p + 1);
      EXPECT_EQ(move.source.back()[y] - move.source.back()[x], halves ? half : 1) << row.name;
      EXPECT_EQ(move.factor[x], move.factor[y]) << row.name;
    }
  }
}

TEST(Symmetry, MovedOutputsPassTheComparisonAndAWrongRowDoesNot) {
  const auto problem = make_problem(grid("cpu").scenarios[4]);  // bf16
  const auto buffers = inputs_of(problem, "mixture", 5);
  const auto symmetry = random_symmetry(problem, buffers, 6);
  const auto expected = solve(problem, buffers, {}, 2);
  const auto fresh = solve(problem, op::transform_buffers(problem, symmetry, buffers), {}, 2);
  const auto output = static_cast<size_t>(index_tensors(problem).output);
  std::vector<std::byte> bytes(problem.tensors[output].bytes);
  for (size_t i = 0; i < fresh.tensors[output].values.size(); ++i)
    core::store_element(bytes.data(), problem.tensors[output].dtype, i, fresh.tensors[output].values[i]);
  const auto right =
      op::compare_rows(problem, static_cast<int>(output), symmetry, expected.tensors[output], bytes.data());
  EXPECT_EQ(right.failures, 0) << right.where;
  EXPECT_LT(right.worst, 0.003);
  EXPECT_GT(op::compare_rows(problem, static_cast<int>(output), {}, expected.tensors[output], bytes.data()).failures,
            0);
}

}  // namespace
}  // namespace ks::attention_fwd
