// The tuner against a made-up machine: its search, its attention, and that it is a function of what it was told.
#include "agents/tuner.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ks::agents {
namespace {

constexpr const char* kSource =
    "constexpr int kRows = 8;  // @tune kRows {4, 8, 16, 32}\n"
    "constexpr int kColumns = 4;  // @tune kColumns {4, 8, 16}\n"
    "constexpr Loop kLoop = Loop::kRowWise;  // @tune kLoop {Loop::kRowWise, Loop::kTiled}\n";

/// Times of two scenarios: "wide" likes many columns and tiles, "tall" likes many rows.
EvaluationFigures measure(int number, const Json& memo) {
  const Json& settings = memo.at("settings");
  const double rows = std::stod(settings.at("kRows").get<std::string>());
  const double columns = std::stod(settings.at("kColumns").get<std::string>());
  const bool tiled = settings.at("kLoop") == "Loop::kTiled";
  EvaluationFigures figures{.number = number, .outcome = "judged", .correct = 2, .total = 2, .memo = memo};
  figures.scenarios = {{"a/wide", "correct", 0, 0.1 * columns * (tiled ? 1.5 : 1.0)},
                       {"a/tall", "correct", 0, 0.02 * rows}};
  return figures;
}

AgentContext run(int evaluations, const std::vector<AgentMessage>& messages, uint64_t seed = 1,
                 const char* source = kSource) {
  AgentContext context{.seed = seed, .messages = messages};
  const auto points = find_tune_points(source, "k.cpp");
  for (int i = 0; i < evaluations; ++i) {
    const TunerPlan plan = plan_next(context, points);
    if (plan.step.kind != AgentStep::Kind::kEvaluate) break;
    context.history.push_back(measure(i + 1, plan.step.memo));
  }
  return context;
}

TEST(TunePoints, AreFoundWithTheirValuesAndWrittenBackInPlace) {
  const auto points = find_tune_points(kSource, "k.cpp");
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].value, "8");
  EXPECT_EQ(points[2].value, "Loop::kRowWise");
  EXPECT_THAT(points[1].values, testing::ElementsAre("4", "8", "16"));
  const std::string changed = with_settings(kSource, {{"kRows", "32"}, {"kLoop", "Loop::kTiled"}}, "k.cpp");
  EXPECT_THAT(changed, testing::HasSubstr("kRows = 32;  // @tune kRows {4, 8, 16, 32}"));
  EXPECT_THAT(changed, testing::HasSubstr("kLoop = Loop::kTiled;"));
  EXPECT_THAT(changed, testing::HasSubstr("kColumns = 4;"));
  EXPECT_EQ(with_settings(changed, {{"kRows", "8"}, {"kLoop", "Loop::kRowWise"}}, "k.cpp"), kSource);
}

TEST(TunePoints, NameFileAndLineOfAMarkThatCannotBeUnderstood) {
  try {
    (void)find_tune_points("int a;\nconstexpr int kB = 3;  // @tune kC {1, 2}\n", "k.cpp");
    FAIL() << "the mark names another constant";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::StartsWith("k.cpp:2: "));
  }
  EXPECT_THROW((void)find_tune_points("constexpr int kB = 3;  // @tune kB {3}", "k.cpp"), Error);
}

TEST(Tuner, FindsTheBestOfASmallSpaceAndThenSaysThatItIsDone) {
  AgentContext context = run(200, {});
  ASSERT_LT(context.history.size(), 24u) << "it need not try everything";
  const TunerPlan plan = plan_next(context, find_tune_points(kSource, "k.cpp"));
  EXPECT_EQ(plan.step.kind, AgentStep::Kind::kClaim);
  EXPECT_THAT(plan.step.claims, testing::Contains("done"));
  EXPECT_THAT(plan.settings,
              testing::UnorderedElementsAre(testing::Pair("kRows", "32"), testing::Pair("kColumns", "16"),
                                            testing::Pair("kLoop", "Loop::kTiled")));
}

TEST(Tuner, LeavesTheBestVersionWhenTheBudgetIsSpent) {
  AgentContext context = run(200, {});
  context.evaluations_left = 0;
  const TunerPlan plan = plan_next(context, find_tune_points(kSource, "k.cpp"));
  EXPECT_EQ(plan.step.kind, AgentStep::Kind::kStop);
  EXPECT_EQ(plan.settings.at("kRows"), "32");
}

TEST(Tuner, IsAFunctionOfWhatItWasTold) {
  const auto once = run(12, {}), again = run(12, {});
  EXPECT_EQ(to_json(once), to_json(again));
  // Through JSON and back, as over a process border.
  EXPECT_EQ(to_json(context_from_json(to_json(once))), to_json(once));
}

int edits_of(const AgentContext& context, const std::string& name, size_t first) {
  int count = 0;
  for (size_t i = first; i < context.history.size(); ++i)
    count += context.history[i].memo.at("change").get<std::string>().rfind(name, 0) == 0;
  return count;
}

/// More values than a few evaluations get through.
constexpr const char* kLongSource =
    "constexpr int kRows = 1;  // @tune kRows {1, 2, 4, 8, 16, 32, 64, 128}\n"
    "constexpr int kColumns = 1;  // @tune kColumns {1, 2, 4, 8, 16, 32, 64, 128}\n"
    "constexpr Loop kLoop = Loop::kRowWise;  // @tune kLoop {Loop::kRowWise, Loop::kTiled}\n";

TEST(Tuner, SpendsItsEvaluationsOnTheScenarioItWasAskedAbout) {
  int with_question = 0, without = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    AgentContext plain = run(6, {}, seed, kLongSource);
    AgentContext asked = plain;
    asked.messages.push_back({"Which part of tall's time have you looked at?", "tall"});
    const auto points = find_tune_points(kLongSource, "k.cpp");
    for (auto* context : {&plain, &asked})
      for (int i = 0; i < 3; ++i) {
        const auto plan = plan_next(*context, points);
        if (plan.step.kind != AgentStep::Kind::kEvaluate) break;
        context->history.push_back(measure(7 + i, plan.step.memo));
      }
    with_question += edits_of(asked, "kRows", 6);
    without += edits_of(plain, "kRows", 6);
    for (size_t i = 6; i < asked.history.size(); ++i) EXPECT_EQ(asked.history[i].memo.at("objective"), "tall");
  }
  EXPECT_GT(with_question, without);
}

TEST(Tuner, NeverBuildsOnAVersionThatIsWrong) {
  AgentContext context = run(1, {});
  const auto points = find_tune_points(kSource, "k.cpp");
  const auto plan = plan_next(context, points);
  context.history.push_back(measure(2, plan.step.memo));
  context.history[1].scenarios[0] = {"a/wide", "wrong", 0, 0};
  context.history[1].scenarios[1].ratio = 100;
  const auto next = plan_next(context, points);
  const auto start = context.history[0].memo.at("settings");
  int differences = 0;
  for (const auto& [name, value] : next.settings) differences += start.at(name) != value;
  EXPECT_EQ(differences, 1) << "an edit of the first version";
}

TEST(Tuner, WidensItsSearchAfterARefusal) {
  AgentContext context = run(200, {});
  const size_t before = context.history.size();
  context.messages.push_back({"The goal is not met.", "", true});
  const auto plan = plan_next(context, find_tune_points(kSource, "k.cpp"));
  EXPECT_EQ(plan.step.kind, AgentStep::Kind::kEvaluate) << "two constants at once are left, after " << before;
}

}  // namespace
}  // namespace ks::agents
