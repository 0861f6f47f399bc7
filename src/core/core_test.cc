// Tests of the nouns: conversions are exact, grids say what is wrong and where, records survive the round trip.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "core/grid.h"
#include "core/record.h"

namespace ks::core {
namespace {

TEST(Dtype, EveryF16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = f16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_f16(value), bits) << bits;
  }
}

TEST(Dtype, EveryE4m3SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const float value = e4m3_to_float(static_cast<uint8_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_e4m3(value), bits) << bits;
  }
}

TEST(Dtype, EveryBf16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bf16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_bf16(value), bits) << bits;
  }
}

TEST(Dtype, RoundsToNearestEven) {
  EXPECT_EQ(float_to_bf16(1.0f + 0x1.0p-8f), float_to_bf16(1.0f));
  EXPECT_EQ(bf16_to_float(float_to_bf16(1.0f + 0x1.8p-7f)), 1.0f + 0x1.0p-6f);
  EXPECT_EQ(f16_to_float(float_to_f16(2049.0f)), 2048.0f);
  EXPECT_EQ(e4m3_to_float(float_to_e4m3(17.0f)), 16.0f);
  EXPECT_EQ(e4m3_to_float(float_to_e4m3(1000.0f)), 448.0f);
}

class GridFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto path = folder_.path() / "small.tsv";
    base::write_file_atomically(path, text);
    return path.string();
  }
  std::string error_of(const std::string& text) {
    try {
      read_grid(write(text));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  base::TempFolder folder_;
};

TEST_F(GridFile, KeepsRowsInOrderWithTheirOrigin) {
  const Grid grid = read_grid(write("#\tcategory\tname\trows\n1\tsmall\ta\t3\n2\tlarge\tb\t4\n"));
  ASSERT_EQ(grid.scenarios.size(), 2u);
  EXPECT_EQ(grid.scenarios[1].name, "b");
  EXPECT_EQ(grid.scenarios[1].values.at("rows"), "4");
  EXPECT_TRUE(grid.scenarios[1].origin.ends_with("small.tsv:3"));
}

TEST_F(GridFile, SaysWhereAMalformedRowIs) {
  EXPECT_NE(error_of("#\tcategory\tname\n1\tsmall\n").find("small.tsv:2: 2 columns where the header has 3"),
            std::string::npos);
  EXPECT_NE(error_of("#\tcategory\tname\nx\tsmall\ta\n").find("small.tsv:2: column \"#\""), std::string::npos);
  EXPECT_NE(error_of("#\tcategory\tname\n1\ts\ta\n2\ts\ta\n").find("small.tsv:3: the name \"a\" occurs twice"),
            std::string::npos);
}

TEST_F(GridFile, FilterThatMatchesNothingNamesTheCategories) {
  const Grid grid = read_grid(write("#\tcategory\tname\n1\tsmall\ta\n"));
  EXPECT_EQ(filter_scenarios(grid, "SMALL/a").size(), 1u);
  EXPECT_THROW(filter_scenarios(grid, "decode"), Error);
  EXPECT_THROW(filter_scenarios(grid, "("), Error);
}

TEST(Evaluation, SurvivesTheRoundTrip) {
  Evaluation evaluation;
  evaluation.operator_name = "rmsnorm";
  evaluation.outcome = "judged";
  ScenarioResult result;
  result.id = 3;
  result.name = "a";
  result.category = "small";
  result.candidate.verdict = Verdict::kCorrect;
  result.candidate.time_us = 12.5;
  result.candidate.error = RowError{0.002, 0.001, 0.01};
  result.baselines["openblas"].verdict = Verdict::kWrong;
  result.baselines["openblas"].reason = "row 3";
  result.ratio["fastest"] = {1.1, 1.0, 1.2};
  evaluation.scenarios.push_back(result);
  evaluation.summary.total = 1;
  evaluation.summary.geomean["fastest"] = 1.1;
  evaluation.summary.geomean["openblas"] = std::nullopt;
  const Json json = to_json(evaluation);
  EXPECT_EQ(to_json(evaluation_from_json(json, "test")), json);
  EXPECT_TRUE(json["summary"]["geomean"]["openblas"].is_null());
}

TEST(Evaluation, RefusesAnotherSchema) {
  EXPECT_THROW(evaluation_from_json(Json{{"schema", "other/1"}}, "x.json"), Error);
}

}  // namespace
}  // namespace ks::core
