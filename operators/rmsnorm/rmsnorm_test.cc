#include "operators/rmsnorm/rmsnorm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "abi/rmsnorm.h"
#include "base/error.h"
#include "operators/apply_symmetry.h"
#include "operators/output_rows.h"

namespace ks::rmsnorm {
namespace {

core::Grid grid(const std::string& name) {
  return core::read_grid(base::fs::path(KS_SOURCE_DIR) / "operators/rmsnorm/grids" / (name + ".tsv"));
}

core::Scenario scenario(const std::string& dtype, int rows, int columns, const std::string& epsilon) {
  core::Scenario made;
  made.name = "made";
  made.origin = "grid.tsv:3";
  made.values = {{"dtype", dtype}, {"rows", std::to_string(rows)}, {"columns", std::to_string(columns)},
                 {"gap", "0"},     {"epsilon", epsilon},           {"note", ""}};
  return made;
}

op::Buffers inputs_of(const op::Problem& problem, const std::string& recipe, uint64_t seed, bool nan_slack = false) {
  op::Buffers buffers;
  for (const auto& tensor : problem.tensors) buffers.emplace_back(tensor.bytes);
  RmsNorm().make_inputs(problem, recipe, seed, nan_slack, buffers);
  return buffers;
}

TEST(RmsNormReference, MatchesValuesWorkedOutByHand) {
  const auto problem = RmsNorm().problem(scenario("fp32", 2, 2, "1"));
  op::Buffers buffers = inputs_of(problem, "mixture", 1);
  const float x[] = {1, 1, 0, 4}, w[] = {2, -1};
  std::memcpy(buffers[kInput].data(), x, sizeof(x));
  std::memcpy(buffers[kWeight].data(), w, sizeof(w));
  const auto expected = RmsNorm().solve(problem, buffers, {}, 1);
  const auto& values = expected.tensors[kOutput].values;
  // mean of squares 1, plus 1: each is divided by sqrt(2). Then mean 8, plus 1: divided by 3.
  EXPECT_FLOAT_EQ(values[0], static_cast<float>(2 / std::sqrt(2.0)));
  EXPECT_FLOAT_EQ(values[1], static_cast<float>(-1 / std::sqrt(2.0)));
  EXPECT_EQ(values[2], 0);
  EXPECT_FLOAT_EQ(values[3], -4.0f / 3);
}

TEST(RmsNormReference, GivesExactZerosForARowOfZeros) {
  const auto problem = RmsNorm().problem(scenario("bf16", 16, 8, "1e-5"));
  const auto expected = RmsNorm().solve(problem, inputs_of(problem, "zero_rows", 3), {}, 2);
  int zero_rows = 0;
  for (size_t r = 0; r < 16; ++r) zero_rows += expected.tensors[kOutput].values[r * 8] == 0;
  EXPECT_GT(zero_rows, 0);
  EXPECT_LT(zero_rows, 16);
}

TEST(RmsNormReference, SampledRowsAreTheSameAsAllRows) {
  const auto problem = RmsNorm().problem(scenario("bf16", 100, 33, "1e-5"));
  const auto buffers = inputs_of(problem, "mixture", 3);
  const auto all = RmsNorm().solve(problem, buffers, {}, 2).tensors[kOutput];
  const auto some = RmsNorm().solve(problem, buffers, {op::Coverage::Kind::kSampledRows, 5, 10}, 2).tensors[kOutput];
  int known = 0;
  for (size_t r = 0; r < 100; ++r) {
    if (some.known[r] == 0) continue;
    ++known;
    for (size_t c = 0; c < 33; ++c) EXPECT_EQ(some.values[r * 33 + c], all.values[r * 33 + c]);
  }
  EXPECT_GE(known, 2);
  EXPECT_LE(known, 12);
}

TEST(RmsNormInputs, AreAPureFunctionOfTheSeed) {
  const auto problem = RmsNorm().problem(grid("demo").scenarios[1]);
  EXPECT_EQ(inputs_of(problem, "mixture", 4), inputs_of(problem, "mixture", 4));
  EXPECT_NE(inputs_of(problem, "mixture", 4), inputs_of(problem, "mixture", 5));
}

TEST(RmsNormInputs, AreFiniteInEveryRecipeAndLeaveFiniteAnswers) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = RmsNorm().problem(row);
    for (const auto& recipe : RmsNorm().recipes(problem)) {
      const auto buffers = inputs_of(problem, recipe.name, 11, true);
      const auto expected = RmsNorm().solve(problem, buffers, {}, 2);
      for (const float value : expected.tensors[kOutput].values)
        ASSERT_TRUE(std::isfinite(value) && std::fabs(value) < 6e4f) << row.name << " " << recipe.name;
    }
  }
}

TEST(RmsNormInputs, PutNanIntoTheGapsWhenAsked) {
  for (const auto& row : grid("cpu").scenarios) {
    if (row.values.at("gap") != "24") continue;
    const auto problem = RmsNorm().problem(row);
    const auto dtype = problem.tensors[kInput].dtype;
    EXPECT_TRUE(std::isnan(core::load_element(inputs_of(problem, "mixture", 1, true)[kInput].data(), dtype, 645)));
    EXPECT_TRUE(std::isfinite(core::load_element(inputs_of(problem, "mixture", 1, false)[kInput].data(), dtype, 645)));
  }
}

TEST(RmsNormSymmetry, LeavesTheAnswerOfAFreshSolve) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = RmsNorm().problem(row);
    const auto buffers = inputs_of(problem, "mixture", 21);
    const auto symmetry = RmsNorm().draw_symmetry(problem, buffers, 22);
    const auto moved = op::transform_buffers(problem, symmetry, buffers);
    const auto fresh = RmsNorm().solve(problem, moved, {}, 2).tensors[kOutput];
    const auto expected = RmsNorm().solve(problem, buffers, {}, 2).tensors[kOutput];
    const auto comparison = op::compare_rows(
        problem, kOutput, symmetry, expected,
        [&] {
          auto bytes = std::vector<std::byte>(problem.tensors[kOutput].bytes);
          const auto& tensor = problem.tensors[kOutput];
          const auto columns = static_cast<size_t>(tensor.shape[1]);
          for (size_t i = 0; i < fresh.values.size(); ++i)
            core::store_element(bytes.data(), tensor.dtype,
                                i / columns * static_cast<size_t>(tensor.strides[0]) + i % columns, fresh.values[i]);
          return bytes;
        }()
            .data());
    EXPECT_EQ(comparison.failures, 0) << row.name << ": " << comparison.where;
    // Before rounding to the output's type, nothing but the order of the sum differs.
    const auto want = op::transform_rows(problem, kOutput, symmetry, expected).values;
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(fresh.values[i], want[i], 1e-6 * std::fabs(want[i])) << row.name;
  }
}

TEST(RmsNormSymmetry, ChangesTheInputs) {
  const auto problem = RmsNorm().problem(grid("demo").scenarios[0]);
  const auto buffers = inputs_of(problem, "mixture", 21);
  const auto moved = op::transform_buffers(problem, RmsNorm().draw_symmetry(problem, buffers, 1), buffers);
  EXPECT_NE(moved[kInput], buffers[kInput]);
  EXPECT_NE(moved[kWeight], buffers[kWeight]);
}

TEST(RmsNormTolerance, AcceptsRoundingTwiceAndRefusesAMeanOverTooFewColumns) {
  for (const char* dtype : {"fp32", "fp16", "bf16"}) {
    const auto problem = RmsNorm().problem(scenario(dtype, 64, 512, "1e-5"));
    const auto& tensor = problem.tensors[kOutput];
    const auto buffers = inputs_of(problem, "mixture", 2);
    const auto expected = RmsNorm().solve(problem, buffers, {}, 1).tensors[kOutput];
    std::vector<std::byte> got(tensor.bytes);
    const auto failures = [&](double used_columns) {
      for (size_t i = 0; i < expected.values.size(); ++i) {
        const float weight = core::load_element(buffers[kWeight].data(), tensor.dtype, i % 512);
        const auto scale = static_cast<float>(std::sqrt(used_columns / 512));
        core::store_element(got.data(), tensor.dtype, i, expected.values[i] / weight * scale);
        core::store_element(got.data(), tensor.dtype, i, core::load_element(got.data(), tensor.dtype, i) * weight);
      }
      return op::compare_rows(problem, kOutput, {}, expected, got.data()).failures;
    };
    EXPECT_EQ(failures(512), 0) << dtype;
    EXPECT_EQ(failures(496), 64) << dtype;  // a mean that forgets one vector of 16
  }
}

TEST(RmsNormTolerance, AcceptsOneRunningSumOverNearlyEqualColumns) {
  for (const int columns : {128, 512, 4096, 16384}) {
    const auto problem = RmsNorm().problem(scenario("fp32", 32, columns, "1e-5"));
    for (const char* recipe : {"mixture", "constant", "outlier_channels"}) {
      const auto buffers = inputs_of(problem, recipe, 3);
      const auto expected = RmsNorm().solve(problem, buffers, {}, 1).tensors[kOutput];
      const auto* x = reinterpret_cast<const float*>(buffers[kInput].data());
      const auto* weight = reinterpret_cast<const float*>(buffers[kWeight].data());
      std::vector<float> got(expected.values.size());
      for (int row = 0; row < 32; ++row, x += columns) {
        float sum = 0;
        for (int c = 0; c < columns; ++c) sum += x[c] * x[c];
        const float factor = 1 / std::sqrt(sum / static_cast<float>(columns) + 1e-5f);
        for (int c = 0; c < columns; ++c) got[static_cast<size_t>(row * columns + c)] = x[c] * factor * weight[c];
      }
      const auto found =
          op::compare_rows(problem, kOutput, {}, expected, reinterpret_cast<const std::byte*>(got.data()));
      EXPECT_EQ(found.failures, 0) << columns << " columns, " << recipe << ": " << found.worst;
    }
  }
}

TEST(RmsNormGrids, EveryRowMakesAProblemWhoseBlobsSayTheSame) {
  for (const char* name : {"demo", "cpu", "hopper"})
    for (const auto& row : grid(name).scenarios) {
      const auto problem = RmsNorm().problem(row);
      const auto& shape = *reinterpret_cast<const ks_rmsnorm_shape*>(problem.shape_blob.data());
      EXPECT_EQ(shape.header.struct_bytes, problem.shape_blob.size());
      EXPECT_EQ(std::to_string(shape.rows), row.values.at("rows"));
      EXPECT_EQ(std::to_string(shape.columns), row.values.at("columns"));
      EXPECT_GT(problem.flops, 0);
      EXPECT_GT(problem.bytes, 0);
      for (const auto& value : row.values) {
        bool documented = false;
        for (const auto& column : RmsNorm().columns()) documented = documented || column.name == value.first;
        EXPECT_TRUE(documented) << value.first;
      }
    }
}

TEST(RmsNormCells, ThatCannotBeReadAreRefusedByName) {
  const auto refuses = [](const std::string& column, const std::string& text, const std::string& why) {
    auto row = scenario("fp32", 2, 2, "1e-5");
    row.values[column] = text;
    try {
      static_cast<void>(RmsNorm().problem(row));
      ADD_FAILURE() << column << " = " << text << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()).rfind("grid.tsv:3: column \"" + column + "\": ", 0), 0u) << e.what();
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  refuses("dtype", "bf15", "unknown dtype");
  refuses("dtype", "e4m3", "must be fp32, fp16 or bf16");
  refuses("rows", "0", "out of range");
  refuses("columns", "many", "not a whole number");
  refuses("gap", "-1", "out of range");
  refuses("epsilon", "small", "not a number");
  refuses("epsilon", "0", "above 0");
}

}  // namespace
}  // namespace ks::rmsnorm
