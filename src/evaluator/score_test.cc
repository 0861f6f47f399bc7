#include "evaluator/score.h"

#include <gtest/gtest.h>

namespace ks::evaluator {
namespace {

using core::Verdict;

core::Side side(Verdict verdict, double time_us) {
  core::Side result;
  result.verdict = verdict;
  if (verdict != Verdict::kCorrect) return result;
  result.time_us = time_us;
  result.samples_us.assign(8, time_us);
  return result;
}

core::ScenarioResult scenario(int id, core::Side candidate, std::map<std::string, core::Side> baselines) {
  core::ScenarioResult result;
  result.id = id;
  result.name = "s" + std::to_string(id);
  result.category = id % 2 == 0 ? "even" : "odd";
  result.candidate = std::move(candidate);
  result.baselines = std::move(baselines);
  return result;
}

TEST(Score, FastestIsTheFastestRightBaseline) {
  core::Evaluation evaluation;
  evaluation.scenarios = {scenario(1, side(Verdict::kCorrect, 10),
                                   {{"slow", side(Verdict::kCorrect, 30)},
                                    {"fast", side(Verdict::kCorrect, 20)},
                                    {"wrong", side(Verdict::kWrong, 1)}})};
  score_evaluation(evaluation, {});
  EXPECT_NEAR(evaluation.scenarios[0].ratio.at("fastest").value, 2.0, 1e-12);
  EXPECT_FALSE(evaluation.scenarios[0].ratio.contains("wrong"));
  EXPECT_NEAR(*evaluation.summary.geomean.at("slow"), 3.0, 1e-12);
  EXPECT_FALSE(evaluation.summary.geomean.at("wrong").has_value());
}

TEST(Score, GeomeanIsUndefinedWhereTheCandidateFailsAndABaselineIsRight) {
  core::Evaluation evaluation;
  evaluation.scenarios = {scenario(1, side(Verdict::kCorrect, 10), {{"b", side(Verdict::kCorrect, 20)}}),
                          scenario(2, side(Verdict::kUnsupported, 0), {{"b", side(Verdict::kCorrect, 20)}})};
  score_evaluation(evaluation, {});
  EXPECT_FALSE(evaluation.summary.geomean.at("b").has_value());
  EXPECT_EQ(evaluation.summary.correct, 1);
  EXPECT_EQ(*evaluation.summary.parity.at("b"), 1);
  EXPECT_NEAR(*evaluation.by_category.at("odd").geomean.at("b"), 2.0, 1e-12);
}

TEST(Score, AScenarioWithoutARightBaselineHasNoRatioAndSpoilsNothing) {
  core::Evaluation evaluation;
  evaluation.scenarios = {scenario(1, side(Verdict::kCorrect, 10), {{"b", side(Verdict::kCorrect, 20)}}),
                          scenario(2, side(Verdict::kCorrect, 10), {{"b", side(Verdict::kUnsupported, 0)}})};
  score_evaluation(evaluation, {});
  EXPECT_NEAR(*evaluation.summary.geomean.at("b"), 2.0, 1e-12);
  EXPECT_EQ(evaluation.summary.total, 2);
}

TEST(Score, SelfComparisonIsReported) {
  core::Evaluation evaluation;
  evaluation.scenarios = {scenario(1, side(Verdict::kCorrect, 10), {})};
  score_evaluation(evaluation, {0.01, 0.02, 0.03});
  EXPECT_NEAR(*evaluation.summary.aa_median, 0.02, 1e-12);
}

TEST(Score, AGroupIsItsFastestMemberThatIsRight) {
  const std::map<std::string, core::Side> sides = {
      {"a", side(Verdict::kWrong, 5)}, {"b", side(Verdict::kCorrect, 20)}, {"c", side(Verdict::kCorrect, 10)}};
  const core::Side best = best_member({"a", "b", "c"}, sides);
  EXPECT_EQ(best.verdict, Verdict::kCorrect);
  EXPECT_EQ(best.reason, "c");
  EXPECT_EQ(best_member({"a", "b"}, sides).reason, "b");
  EXPECT_EQ(best_member({"a", "d"}, sides).verdict, Verdict::kWrong);
}

TEST(Score, ACarriedRatioIsNotComputedAnew) {
  core::Evaluation evaluation;
  evaluation.scenarios = {scenario(1, side(Verdict::kCorrect, 10),
                                   {{"b", side(Verdict::kCorrect, 20)}, {"c", side(Verdict::kCorrect, 30)}})};
  score_evaluation(evaluation, {}, {{evaluation.scenarios[0].name, {{"c", {2.5, 2.4, 2.6}}}}});
  EXPECT_NEAR(evaluation.scenarios[0].ratio.at("b").value, 2.0, 1e-12);
  EXPECT_NEAR(evaluation.scenarios[0].ratio.at("c").value, 2.5, 1e-12);
}

}  // namespace
}  // namespace ks::evaluator
