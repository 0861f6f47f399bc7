#include "evaluator/resume.h"

#include <gtest/gtest.h>

namespace ks::evaluator {
namespace {

core::Evaluation record() {
  core::Evaluation evaluation;
  evaluation.operator_name = "rmsnorm";
  evaluation.grid_hash = "g";
  evaluation.device = "cuda";
  evaluation.timing = "blocks";
  evaluation.candidate_hash = "c";
  evaluation.provenance["device"] = {{"name", "a GPU"}, {"state", {{"driver", "1"}}}};
  return evaluation;
}

core::ScenarioResult result(int id, const std::string& name) {
  core::ScenarioResult scenario;
  scenario.id = id;
  scenario.name = name;
  scenario.candidate.verdict = core::Verdict::kCorrect;
  return scenario;
}

TEST(Resume, RefusesAnotherDriverAndNamesIt) {
  const core::Evaluation old = record();
  core::Evaluation now = record();
  EXPECT_NO_THROW(check_resumable(old, now));
  now.provenance["device"]["state"]["driver"] = "2";
  try {
    check_resumable(old, now);
    FAIL() << "another driver must be refused";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("driver"), std::string::npos) << e.what();
  }
}

TEST(Resume, RefusesAnotherCandidate) {
  core::Evaluation now = record();
  now.candidate_hash = "other";
  EXPECT_THROW(check_resumable(record(), now), Error);
}

TEST(Resume, KeepsTheRatioOfABaselineThatWasTimedBefore) {
  core::ScenarioResult old = result(1, "x"), fresh = result(1, "x");
  old.baselines["fa"].verdict = core::Verdict::kCorrect;
  old.ratio["fa"] = {1.5, 1.4, 1.6};
  fresh.baselines["dnn"].verdict = core::Verdict::kCorrect;
  CarriedRatios carried;
  merge_baselines(old, fresh, carried);
  EXPECT_EQ(fresh.baselines.size(), 2u);
  EXPECT_EQ(carried.at("x").at("fa").value, 1.5);
  EXPECT_FALSE(carried.at("x").contains("dnn"));
}

TEST(Resume, KeepsScenariosThatThisFilterLeavesOutInTheirOrder) {
  core::Evaluation old = record(), now = record();
  old.scenarios = {result(1, "x"), result(3, "z")};
  now.scenarios = {result(2, "y"), result(3, "z")};
  CarriedRatios carried;
  keep_the_rest(old, now, carried);
  ASSERT_EQ(now.scenarios.size(), 3u);
  EXPECT_EQ(now.scenarios[0].name, "x");
  EXPECT_EQ(now.scenarios[1].name, "y");
  EXPECT_EQ(now.provenance["resumed"].size(), 1u);
}

}  // namespace
}  // namespace ks::evaluator
