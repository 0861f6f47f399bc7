// Whole experiments over the made-up machine: plans, pairs, interruptions.
#include <gmock/gmock.h>

#include <cmath>

#include "agents/tuner.h"
#include "experiment/run_experiment.h"
#include "run/asker.h"
#include "run/fake_machine.h"

namespace ks::experiment {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A plan over the made-up machine in a folder of its own.
struct ExperimentTest : testing::Test {
  base::TempFolder folder{"experiment"};
  std::FILE* null = std::fopen("/dev/null", "w");
  run::Workbench bench;
  std::atomic<bool> cancel = false;
  int evaluations = 0, cancel_at = -1;

  ExperimentTest() {
    run::write_fake_task(folder.path(), "[budget]\nevaluations = 99\n[judge]\nhidden_scenarios = 0\n", "geomean >= 9");
    bench.evaluate = [this](const evaluator::Request& request) {
      if (++evaluations == cancel_at) cancel = true;
      return run::fake_evaluation(request);
    };
    bench.make_agent = [](const run::AgentSetup&) { return std::make_unique<agents::Tuner>(); };
    bench.make_questioner = [](const run::Task& task, const run::RunPaths& paths) {
      return run::make_asker(task, paths.root);
    };
    write_plan("seeds = 3\n");
  }
  ~ExperimentTest() override { std::fclose(null); }

  void write_plan(const std::string& seeds, const std::string& more = "") {
    base::write_file_atomically(folder.path() / "plan.toml",
                                "name = \"p\"\ntreatment = \"bank\"\n" + seeds +
                                    "[budget]\nevaluations = 6\n[arms.none]\nquestioner = \"none\"\n"
                                    "[arms.bank]\nquestioner = \"bank\"\n[[task]]\nfile = \"fake.toml\"\n" +
                                    more);
  }
  ExperimentOptions options() {
    ExperimentOptions options;
    options.plan = (folder.path() / "plan.toml").string();
    options.out = (folder.path() / "out").string();
    options.log = null;
    options.cancel = &cancel;
    return options;
  }
  std::string refused(const std::string& more, const std::string& seeds = "seeds = 3\n") {
    write_plan(seeds, more);
    try {
      (void)read_plan(folder.path() / "plan.toml");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(ExperimentTest, RunsEveryArmWithEverySeedAndEqualEvaluations) {
  const auto result = run_experiment(options(), bench);
  EXPECT_EQ(result.done, 6u);
  const Json record = base::read_json_file(result.record);
  EXPECT_EQ(record.at("schema"), kExperimentSchema);
  EXPECT_TRUE(record.at("equal_evaluations").get<bool>());
  EXPECT_EQ(record.at("cells").size(), 6u);
  for (const Json& cell : record.at("cells")) {
    EXPECT_EQ(cell.at("evaluations"), 6);
    EXPECT_EQ(cell.at("curve").size(), 6u);
    // The final version is evaluated afresh, and on this machine it is as good as the best of the curve.
    EXPECT_NEAR(cell.at("heldout_log").get<double>(), cell.at("curve").back().get<double>(), 1e-9);
  }
  for (const Json& comparison : record.at("comparisons")) EXPECT_EQ(comparison.at("pairs"), 3);
  EXPECT_THAT(result.text, AllOf(HasSubstr("none"), HasSubstr("heldout"), HasSubstr("area")));
}

TEST_F(ExperimentTest, GoesOnAfterAnInterruptionWithoutRepeatingWhatIsDone) {
  cancel_at = 17;
  const auto first = run_experiment(options(), bench);
  EXPECT_LT(first.done, 6u);
  EXPECT_GT(first.done, 0u);
  // Without being told so it does not go on in a folder that is taken.
  cancel = false;
  EXPECT_THROW((void)run_experiment(options(), bench), Error);
  auto again = options();
  again.is_resumed = true;
  const int before = evaluations;
  const auto second = run_experiment(again, bench);
  EXPECT_EQ(second.done, 6u);
  EXPECT_LT(evaluations - before, 6 * 9);
  // The same figures as of an experiment that nobody interrupted: this machine has no noise.
  auto whole = options();
  whole.out = (folder.path() / "whole").string();
  const Json a = base::read_json_file(second.record), b = base::read_json_file(run_experiment(whole, bench).record);
  ASSERT_EQ(a.at("cells").size(), b.at("cells").size());
  for (size_t i = 0; i < a.at("cells").size(); ++i) {
    EXPECT_EQ(a.at("cells")[i].at("curve"), b.at("cells")[i].at("curve"));
    EXPECT_EQ(a.at("cells")[i].at("candidate_hash"), b.at("cells")[i].at("candidate_hash"));
  }
}

TEST_F(ExperimentTest, ABrokenRunIsLeftOutAndTriedAgain) {
  bool is_broken = true;
  bench.evaluate = [&](const evaluator::Request& request) {
    if (is_broken && request.candidate.find("fake-2-bank") != std::string::npos) throw Error("the disk is full");
    return run::fake_evaluation(request);
  };
  EXPECT_EQ(run_experiment(options(), bench).done, 5u);
  is_broken = false;
  auto again = options();
  again.is_resumed = true;
  EXPECT_EQ(run_experiment(again, bench).done, 6u);
}

TEST_F(ExperimentTest, AChangedPlanIsNotGoneOnWith) {
  cancel_at = 10;
  (void)run_experiment(options(), bench);
  cancel = false;
  write_plan("seeds = 4\n");
  auto again = options();
  again.is_resumed = true;
  try {
    (void)run_experiment(again, bench);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the plan or what it names changed"));
  }
}

TEST_F(ExperimentTest, SaysWhatItWouldRunAndRunsNothing) {
  const std::string text = describe_experiment(options());
  EXPECT_THAT(text, AllOf(HasSubstr("6 (3 seeds)"), HasSubstr("Nothing was run")));
  EXPECT_EQ(evaluations, 0);
  EXPECT_FALSE(base::fs::exists(folder.path() / "out"));
}

TEST_F(ExperimentTest, PlansAreRefusedWithLineAndMend) {
  EXPECT_EQ(refused(""), "");
  EXPECT_THAT(refused("", "seeds = 0\n"), AllOf(HasSubstr("plan.toml:3"), HasSubstr("\"seeds\"")));
  EXPECT_THAT(refused("", "seeds = [1, 1]\n"), HasSubstr("different whole numbers"));
  EXPECT_THAT(refused("heldout_gird = \"x\"\n"), HasSubstr("did you mean \"heldout_grid\""));
  EXPECT_THAT(refused("[arms.person]\nquestioner = \"human\"\n"), HasSubstr("person"));
  EXPECT_THAT(refused("[arms.x]\nquestioner = \"shufled\"\n"), HasSubstr("did you mean shuffled?"));
  EXPECT_THAT(refused("[[task]]\nfile = \"fake.toml\"\n"), HasSubstr("two tasks are called"));
  EXPECT_THAT(refused("[[task]]\nfile = \"gone.toml\"\n"), HasSubstr("gone.toml"));
}

CellResult cell(const std::string& arm, uint64_t seed, std::optional<double> heldout) {
  CellResult result;
  result.task = "fake";
  result.arm = arm;
  result.seed = seed;
  result.heldout_log = heldout;
  return result;
}

TEST_F(ExperimentTest, PairsBySeedAndLeavesOutWhatHasNoFigure) {
  const Plan plan = read_plan(folder.path() / "plan.toml");
  const auto comparisons =
      compare(plan, {cell("none", 1, 0.1), cell("bank", 1, 0.3), cell("bank", 2, 0.5), cell("none", 2, 0.2),
                     cell("none", 3, 0.9), cell("bank", 3, std::nullopt), cell("bank", 4, 7.0)});
  ASSERT_FALSE(comparisons.empty());
  EXPECT_EQ(comparisons[0].outcome, "heldout");
  EXPECT_EQ(comparisons[0].test.pairs, 2);
  EXPECT_EQ(comparisons[0].without_figure, 1);
  EXPECT_NEAR(comparisons[0].test.mean, 0.25, 1e-12);
}

TEST_F(ExperimentTest, TheOrderOfArmsIsDrawnForEachBlock) {
  write_plan("seeds = 12\n");
  const Plan plan = read_plan(folder.path() / "plan.toml");
  int bank_first = 0;
  const auto cells = cells_of(plan);
  for (size_t i = 0; i < cells.size(); i += 2) bank_first += plan.arms[cells[i].arm].name == "bank";
  EXPECT_GT(bank_first, 1);
  EXPECT_LT(bank_first, 11);
}

TEST(TaskText, ReadsAsTheTaskThatItWasMadeOf) {
  base::TempFolder folder;
  const auto path = run::write_fake_task(folder.path(),
                                         "filter = \"a\\\\d\"\nseed = 7\nbaselines = [\"none\"]\ninstructions = \"say "
                                         "\\\"no\\\"\"\n[budget]\nminutes = 0.5\n"
                                         "evaluations = 3\n[judge]\nhidden_scenarios = 2\n[questioner_model]\nurl = "
                                         "\"http://127.0.0.1:1/v1\"\nname = \"m\"\n");
  const run::Task task = run::read_task(path);
  const run::Task again = run::parse_task(run::task_text(task), "again", folder.path());
  EXPECT_EQ(run::task_text(again), run::task_text(task));
  EXPECT_EQ(again.filter, "a\\d");
  EXPECT_EQ(again.instructions, "say \"no\"");
  EXPECT_EQ(again.seed, 7u);
  EXPECT_EQ(again.budget.minutes, 0.5);
}

}  // namespace
}  // namespace ks::experiment
