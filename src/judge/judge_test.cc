// The judge against made-up evaluations, hidden grids, and what the stop hook answers.
#include "judge/judge.h"

#include <gmock/gmock.h>

#include "judge/facts.h"
#include "judge/hidden_grid.h"

namespace ks::judge {
namespace {

core::Evaluation evaluation_of(double geomean, int correct, int total) {
  core::Evaluation evaluation;
  evaluation.outcome = "judged";
  evaluation.grid_hash = "grid";
  evaluation.summary.total = total;
  evaluation.summary.correct = correct;
  if (correct == total) {
    evaluation.summary.geomean["fastest"] = geomean;
    evaluation.summary.geomean_low["fastest"] = geomean - 0.01;
    evaluation.summary.geomean_high["fastest"] = geomean + 0.01;
  }
  return evaluation;
}

struct JudgeTest : testing::Test {
  Case make_case() {
    Case the_case;
    the_case.goal = "geomean >= 1.0 and correct == all";
    the_case.folder = folder.path();
    the_case.grid_hash = "grid";
    the_case.request.operator_name = "rmsnorm";
    the_case.request.grid = "demo";
    return the_case;
  }
  base::TempFolder folder;
};

TEST_F(JudgeTest, LooksAtTheFilesItselfAndMeasuresByTheLowerEndOfTheInterval) {
  int calls = 0;
  const auto judgement = judge(make_case(), [&](const evaluator::Request&) {
    ++calls;
    return evaluation_of(1.005, 4, 4);
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(judgement.decision, goal::Decision::kNotMet);
  EXPECT_TRUE(base::fs::exists(judgement.record));
}

TEST_F(JudgeTest, RefusesWhatMeetsTheGoalInTheOpenAndFailsOnTheHiddenGrid) {
  Case the_case = make_case();
  the_case.hidden_scenarios = 3;
  std::vector<std::string> grids;
  const auto judgement = judge(the_case, [&](const evaluator::Request& request) {
    grids.push_back(request.grid);
    return grids.size() == 1 ? evaluation_of(1.2, 4, 4) : evaluation_of(1.2, 2, 3);
  });
  ASSERT_EQ(grids.size(), 2u);
  EXPECT_NE(grids[1], "demo");
  EXPECT_EQ(core::read_grid(grids[1]).scenarios.size(), 3u);
  EXPECT_NE(judgement.decision, goal::Decision::kMet);
}

TEST_F(JudgeTest, IsUndecidedWhereTheGridWasEditedOrVanished) {
  Case edited = make_case();
  edited.grid_hash = "another";
  EXPECT_EQ(judge(edited, [](const auto&) { return evaluation_of(2, 4, 4); }).decision, goal::Decision::kUndecided);
  const auto vanished =
      judge(make_case(), [](const auto&) -> core::Evaluation { throw Error("grid.tsv: no such file"); });
  EXPECT_EQ(vanished.decision, goal::Decision::kUndecided);
  EXPECT_THAT(vanished.reason, testing::HasSubstr("grid.tsv"));
}

TEST_F(JudgeTest, ACandidateThatDoesNotBuildIsNotMet) {
  const auto judgement = judge(make_case(), [](const auto&) {
    core::Evaluation evaluation;
    evaluation.outcome = "build_failed";
    evaluation.grid_hash = "grid";
    return evaluation;
  });
  EXPECT_EQ(judgement.decision, goal::Decision::kNotMet);
}

TEST_F(JudgeTest, ItsRefusalCarriesTheFiguresAndOneQuestion) {
  const auto judgement = judge(make_case(), [](const auto&) { return evaluation_of(0.5, 4, 4); });
  const std::string text = refusal_text(judgement, "geomean >= 1.0 and correct == all", "Where does the time go?");
  EXPECT_THAT(text, testing::HasSubstr("not met"));
  EXPECT_THAT(text, testing::HasSubstr("0.49"));
  EXPECT_THAT(text, testing::EndsWith("Where does the time go?\n"));
}

TEST(HiddenGrid, IsAFunctionOfItsSeedAndChangesLengthsWhereItMay) {
  base::TempFolder folder;
  const auto path = folder.path() / "g.tsv";
  base::write_file_atomically(
      path, "#\tcategory\tname\trows\tcolumns\n1\ta\tone\t1024\t64\n2\ta\ttwo\t1\t64\n3\tb\tthree\t=q\t64\n");
  const core::Grid grid = core::read_grid(path);
  const std::vector<VaryRule> rules = {{{"rows"}, 64, 33}};
  const std::string once = hidden_grid_text(grid, "", rules, 5, 3);
  EXPECT_EQ(once, hidden_grid_text(grid, "", rules, 5, 3));
  EXPECT_NE(once, hidden_grid_text(grid, "", rules, 6, 3));
  base::write_file_atomically(path, once);
  for (const auto& scenario : core::read_grid(path).scenarios) {
    if (scenario.name == "one-h") {
      EXPECT_LT(std::stoi(scenario.values.at("rows")), 1024);
      EXPECT_GE(std::stoi(scenario.values.at("rows")), 1024 - 33);
    } else {
      EXPECT_THAT(scenario.name, testing::AnyOf("two", "three")) << "cells that may not be changed stay";
    }
    EXPECT_EQ(scenario.values.at("columns"), "64");
  }
}

Facts met_facts() {
  return {.goal = "geomean >= 1", .goal_state = "met", .evaluation = 3, .evaluated_hash = "h"};
}

TEST(StopHook, RefusesAClaimWithoutAnEvaluationOrAfterAnEdit) {
  EXPECT_FALSE(answer_stop(met_facts(), "h", 0).refuse);
  EXPECT_TRUE(answer_stop(met_facts(), "edited", 0).refuse);
  Facts none = met_facts();
  none.evaluation = 0;
  EXPECT_TRUE(answer_stop(none, "h", 0).refuse);
  Facts unmet = met_facts();
  unmet.goal_state = "not_met";
  unmet.figures = {"geomean (0.4) >= 1: not met"};
  EXPECT_THAT(answer_stop(unmet, "h", 0).text, testing::HasSubstr("0.4"));
}

TEST(StopHook, NeverGoesPastItsCap) {
  EXPECT_FALSE(answer_stop(met_facts(), "edited", 3).refuse);
}

TEST(StopHook, SeesAnEditOfAnyFileOfAFolder) {
  base::TempFolder folder;
  base::write_file_atomically(folder.path() / "a.cc", "1");
  base::write_file_atomically(folder.path() / "b.cc", "2");
  const std::string before = content_hash(folder.path());
  base::write_file_atomically(folder.path() / "b.cc", "3");
  EXPECT_NE(content_hash(folder.path()), before);
}

}  // namespace
}  // namespace ks::judge
