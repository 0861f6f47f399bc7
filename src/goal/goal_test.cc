#include "goal/goal.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ks::goal {
namespace {

Figures figures(std::optional<double> geomean, double correct, double total, std::optional<double> worst) {
  return {{"geomean", geomean}, {"correct", correct}, {"total", total}, {"all", total}, {"worst", worst}};
}

std::string error_of(const std::string& text) {
  try {
    Goal goal(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Goal, IsMetOnlyWhereEveryPartIs) {
  const Goal goal("geomean >= 1.0 and correct == all and worst >= 0.9");
  EXPECT_EQ(goal.decide(figures(1.2, 12, 12, 0.95)), Decision::kMet);
  EXPECT_EQ(goal.decide(figures(1.2, 11, 12, 0.95)), Decision::kNotMet);
  EXPECT_EQ(goal.decide(figures(0.99, 12, 12, 0.95)), Decision::kNotMet);
}

TEST(Goal, WhatIsUndefinedIsUndecidedAndNeverMet) {
  EXPECT_EQ(Goal("geomean >= 1.0").decide(figures(std::nullopt, 12, 12, 1)), Decision::kUndecided);
  EXPECT_EQ(Goal("not geomean >= 1.0").decide(figures(std::nullopt, 12, 12, 1)), Decision::kUndecided);
  EXPECT_EQ(Goal("geomean >= 1.0 or correct == all").decide(figures(std::nullopt, 12, 12, 1)), Decision::kMet);
  EXPECT_EQ(Goal("geomean.fa3 >= 1.0").decide(figures(2, 12, 12, 1)), Decision::kUndecided);
}

TEST(Goal, NotAndParenthesesBind) {
  EXPECT_EQ(Goal("not (correct == all and geomean >= 1)").decide(figures(0.5, 12, 12, 1)), Decision::kMet);
  EXPECT_EQ(Goal("correct == all or geomean >= 1 and worst >= 1").decide(figures(0.5, 12, 12, 0)), Decision::kMet);
}

TEST(Goal, ATypoNamesItsColumnAndTheNearestWord) {
  const auto text = error_of("geomaen >= 1.0");
  EXPECT_NE(text.find("column 1: unknown figure \"geomaen\" (did you mean geomean?)"), std::string::npos) << text;
  EXPECT_NE(error_of("geomean => 1.0").find("column 9"), std::string::npos);
  EXPECT_NE(error_of("geomean >= 1.0 correct == all").find("column 16"), std::string::npos);
  EXPECT_NE(error_of("(geomean >= 1.0").find("\")\" is missing"), std::string::npos);
  EXPECT_NE(error_of("").find("a figure is missing"), std::string::npos);
}

TEST(Goal, CountsMayBePercentagesOfAllScenarios) {
  auto twelve = figures(1.2, 9, 12, 1);
  twelve["parity"] = 9;
  EXPECT_EQ(Goal("parity >= 75% and correct >= 75 %").decide(twelve), Decision::kMet);
  EXPECT_EQ(Goal("parity >= 76%").decide(twelve), Decision::kNotMet);
  EXPECT_EQ(Goal("parity >= 75%").explain(twelve)[0], "parity (9) >= 75%: met");
  EXPECT_NE(error_of("geomean >= 90%").find("column 14: a percentage is of scenarios"), std::string::npos);
}

TEST(Goal, ExplainsEachComparison) {
  const auto lines = Goal("geomean >= 1.0 and correct == all").explain(figures(0.5, 12, 12, 1));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "geomean (0.5) >= 1: not_met");
}

TEST(Goal, IsTestedOnTheLowerEndOfTheInterval) {
  core::Summary summary;
  summary.total = summary.correct = 3;
  summary.geomean["fastest"] = 1.02;
  summary.geomean_low["fastest"] = 0.99;
  EXPECT_EQ(Goal("geomean >= 1.0").decide(figures_of(summary)), Decision::kNotMet);
}

}  // namespace
}  // namespace ks::goal
