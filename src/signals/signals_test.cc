// Signals, each known and unknown, from records and events made in code.
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "signals/axis_signals.h"
#include "signals/claim_text.h"
#include "signals/edit_look.h"
#include "signals/signal_list.h"
#include "signals/signal_tracker.h"
#include "trace/trace_writer.h"

namespace ks::signals {
namespace {

using core::Verdict;

core::ScenarioResult row(const std::string& name, double ratio, std::map<std::string, std::string> values = {}) {
  core::ScenarioResult result{.name = name, .category = "full"};
  result.candidate.verdict = Verdict::kCorrect;
  result.candidate.time_us = 100 / ratio;
  result.candidate.samples_us = {100 / ratio, 101 / ratio, 99 / ratio, 100 / ratio};
  result.candidate.error = core::RowError{0.002, 0.001, 0.01};
  core::Side reference = result.candidate;
  reference.time_us = 100;
  result.baselines["onednn"] = reference;
  result.ratio["fastest"] = result.ratio["onednn"] = {ratio, ratio * 0.99, ratio * 1.01};
  result.bound_us = 20;
  result.flops = 1e9;
  result.bytes = 1e6;
  result.values = std::move(values);
  return result;
}

core::Evaluation evaluation(std::vector<core::ScenarioResult> rows, const std::string& hash = "a",
                            std::optional<double> noise = 0.01) {
  core::Evaluation record;
  record.operator_name = "made_up_operator";
  record.outcome = "judged";
  record.timing = "blocks";
  record.device = "cpu";
  record.candidate_hash = hash;
  record.wall_s = 60;
  record.provenance = {{"processor", "P"}, {"device", {{"l2_bytes", 500000}, {"l3_bytes", 4000000}}}};
  record.scenarios = std::move(rows);
  record.summary.aa_p95 = noise;
  return record;
}

trace::Event event(const std::string& kind, Json body) {
  static int64_t seq = 0;
  trace::Event made;
  made.seq = ++seq;
  made.time = 1000.0 + static_cast<double>(seq);
  made.kind = kind;
  made.session = "main";
  made.body = std::move(body);
  return made;
}

trace::Event edit(const std::string& from, const std::string& to, const std::string& path = "k.cpp") {
  return event("tool_call", {{"id", from + to},
                             {"tool", "Edit"},
                             {"kind", "edit"},
                             {"writes", {path}},
                             {"input", {{"file_path", path}, {"old_string", from}, {"new_string", to}}}});
}

trace::Event evaluated(int number) {
  return event("evaluation", {{"number", number}, {"outcome", "judged"}, {"commit", "c"}});
}

SignalSet after(std::vector<core::Evaluation> records, const std::string& goal = "geomean >= 1.0") {
  SignalTracker tracker({.goal = goal});
  int number = 0;
  for (const auto& record : records) tracker.on_evaluation(++number, record);
  return tracker.current();
}

SignalSet after_events(const std::vector<trace::Event>& events) {
  SignalTracker tracker;
  for (const auto& one : events) tracker.on_event(one);
  return tracker.current();
}

TEST(Signals, NothingSeenIsUnknownAndNotZero) {
  const SignalSet signals = SignalTracker().current();
  for (const char* name : {"geomean", "ratio_min", "noise_rel", "noise_known", "goal", "profiler_runs", "claims_done"})
    EXPECT_FALSE(signals.knows(name)) << name;
  EXPECT_EQ(signals.number("n_evals"), 0);
}

TEST(Signals, RatiosOfTheLatestEvaluation) {
  const auto signals = after({evaluation({row("a", 0.25), row("b", 1.0), row("c", 1.0), row("d", 1.0)})});
  EXPECT_NEAR(*signals.number("geomean"), std::pow(0.25, 0.25), 1e-9);
  EXPECT_EQ(signals.number("goal"), 1.0);
  EXPECT_EQ(signals.number("ratio_min"), 0.25);
  EXPECT_EQ(signals.number("ratio_max"), 1.0);
  EXPECT_EQ(signals.number("ratio_spread"), 4.0);
  EXPECT_EQ(signals.number("loggap_top3_share"), 1.0);
  EXPECT_EQ(signals.number("n_configs"), 4);
  EXPECT_EQ(signals.number("n_configs_reported"), 4);
  EXPECT_EQ(signals.number("n_correct_frac"), 1);
  EXPECT_EQ(signals.number("frac_of_bound"), 20.0 / 400);
  EXPECT_EQ(signals.find("ratio_min")->origin, "evaluation 1");
}

TEST(Signals, ShareOfTheGapIsUnknownWithoutAGoalOrAGap) {
  EXPECT_FALSE(after({evaluation({row("a", 0.5)})}, "correct == all").knows("loggap_top3_share"));
  EXPECT_FALSE(after({evaluation({row("a", 1.5)})}).knows("loggap_top3_share"));
}

TEST(Signals, APartOfTheGridIsNamedAsSuchAndNeverTheBest) {
  SignalTracker tracker;
  tracker.on_evaluation(1, evaluation({row("a", 0.5), row("b", 0.5)}));
  tracker.on_evaluation(2, evaluation({row("a", 2.0)}, "b"));
  const auto signals = tracker.current();
  EXPECT_EQ(signals.number("n_configs"), 2);
  EXPECT_EQ(signals.number("n_configs_reported"), 1);
  EXPECT_NEAR(*signals.number("best_geomean"), 0.5, 1e-9);
  EXPECT_EQ(signals.find("geomean")->origin, "evaluation 2 (1 of 2 scenarios)");
}

TEST(Signals, NoiseIsUnknownUntilABinaryMetItself) {
  const auto without = after({evaluation({row("a", 1)}, "a", std::nullopt)});
  EXPECT_FALSE(without.knows("noise_rel"));
  EXPECT_EQ(without.truth("noise_known"), false);
  const auto with = after({evaluation({row("a", 1)})});
  EXPECT_NEAR(*with.number("noise_rel"), std::expm1(0.01), 1e-12);
  EXPECT_EQ(with.truth("noise_known"), true);
}

TEST(Signals, AStepIsMeasuredOverTheRowsOfBoth) {
  const auto signals = after({evaluation({row("a", 0.5), row("b", 1.0), row("c", 1.0)}),
                              evaluation({row("a", 1.0), row("b", 0.9), row("c", 1.0)}, "b")});
  EXPECT_EQ(signals.number("n_configs_regressed"), 1);
  EXPECT_NEAR(*signals.number("effect_rel"), std::pow(1.8, 1.0 / 3) - 1, 1e-9);
  EXPECT_EQ(signals.truth("geomean_up"), true);
  EXPECT_EQ(signals.truth("ratio_min_moved"), true);
  EXPECT_NEAR(*signals.number("best_per_config_gap"), 0.1, 1e-9);
  EXPECT_EQ(signals.truth("best_choice_differs"), true);
  EXPECT_NEAR(*signals.number("improve_spread"), 2 / 0.9, 1e-9);
  EXPECT_EQ(signals.number("evals_since_improve"), 0);
  EXPECT_NEAR(*signals.number("velocity"), std::log(1.8) / 3, 1e-9);
  EXPECT_EQ(signals.number("candidates_tried"), 2);
}

TEST(Signals, AStepIsUnknownAfterOneEvaluation) {
  const auto signals = after({evaluation({row("a", 0.5), row("b", 1.0)})});
  for (const char* name : {"n_configs_regressed", "effect_rel", "geomean_up", "rank_flip", "velocity",
                           "common_shift_mean", "improve_spread", "drift_rel", "winner_margin", "env_changed"})
    EXPECT_FALSE(signals.knows(name)) << name;
}

TEST(Signals, RegressionsAreUnknownWithoutNoise) {
  const auto signals =
      after({evaluation({row("a", 1)}, "a", std::nullopt), evaluation({row("a", 0.5)}, "b", std::nullopt)});
  EXPECT_FALSE(signals.knows("n_configs_regressed"));
  EXPECT_TRUE(signals.knows("effect_rel"));
}

TEST(Signals, ACommonShiftOfTimesIsSeenThoughRatiosStay) {
  auto slow = evaluation({row("a", 1), row("b", 1), row("c", 1)}, "b");
  for (auto& one : slow.scenarios) *one.candidate.time_us *= 1.2, *one.baselines["onednn"].time_us *= 1.2;
  const auto signals = after({evaluation({row("a", 1), row("b", 1), row("c", 1)}), slow});
  EXPECT_NEAR(*signals.number("common_shift_mean"), std::log(1.2), 1e-9);
  EXPECT_NEAR(*signals.number("common_shift_sd"), 0, 1e-9);
  EXPECT_EQ(signals.number("untouched_moved"), 3);
  EXPECT_NEAR(*signals.number("drift_rel"), 0.2, 1e-9);
}

TEST(Signals, RankFlipsWhereSummariesDisagree) {
  // The mean of logs falls, the arithmetic mean rises.
  EXPECT_EQ(
      after({evaluation({row("a", 1), row("b", 1)}), evaluation({row("a", 0.4), row("b", 2)}, "b")}).truth("rank_flip"),
      true);
  EXPECT_EQ(
      after({evaluation({row("a", 1), row("b", 1)}), evaluation({row("a", 2), row("b", 2)}, "b")}).truth("rank_flip"),
      false);
}

TEST(Signals, OneCandidateMeasuredTwiceMayContradictItself) {
  const auto signals = after({evaluation({row("a", 1)}), evaluation({row("a", 1.5)})});
  EXPECT_EQ(signals.truth("contradiction"), true);
  EXPECT_EQ(signals.number("n_processes"), 2);
  EXPECT_EQ(after({evaluation({row("a", 1)}), evaluation({row("a", 1.01)})}).truth("contradiction"), false);
}

TEST(Signals, GoingBackToAnEarlierVersionIsSeen) {
  const auto back = after({evaluation({row("a", 1)}), evaluation({row("a", 2)}, "b"), evaluation({row("a", 1)})});
  EXPECT_EQ(back.truth("aba_done"), true);
  EXPECT_NEAR(*back.number("winner_margin"), 1.0, 1e-9);
  EXPECT_EQ(after({evaluation({row("a", 1)}), evaluation({row("a", 2)}, "b")}).truth("aba_done"), false);
}

TEST(Signals, VerdictsErrorsAndBounds) {
  auto record = evaluation({row("a", 0.5), row("b", 1)});
  record.scenarios[1].candidate = {};
  record.scenarios[1].candidate.verdict = Verdict::kUnsupported;
  record.scenarios[0].candidate.error = core::RowError{0.006, 0.003, 0.01};
  const auto signals = after({record});
  EXPECT_EQ(signals.number("n_correct_frac"), 0.5);
  EXPECT_EQ(signals.number("n_unsupported"), 1);
  EXPECT_EQ(signals.number("feature_parity"), 0.5);
  EXPECT_NEAR(*signals.number("err_ratio"), 3, 1e-9);
  EXPECT_NEAR(*signals.number("tol_slack"), 5, 1e-9);
  EXPECT_EQ(signals.truth("bound_known"), true);
  EXPECT_EQ(signals.truth("any_above_bound"), false);
  auto unbounded = evaluation({row("a", 1)});
  unbounded.scenarios[0].bound_us.reset();
  unbounded.scenarios[0].candidate.error.reset();
  const auto none = after({unbounded});
  EXPECT_EQ(none.truth("bound_known"), false);
  EXPECT_EQ(none.word("bound_source"), "none");
  EXPECT_FALSE(none.knows("frac_of_bound"));
  EXPECT_FALSE(none.knows("err_ratio"));
  EXPECT_EQ(none.truth("err_ratio_known"), false);
}

TEST(Signals, TimeOutsideTheDeviceIsKnownOnlyWhereTheHostWasTimed) {
  EXPECT_FALSE(after({evaluation({row("a", 1)})}).knows("outside_share"));
  auto record = evaluation({row("a", 1)});
  record.scenarios[0].candidate.host_us = 125;
  EXPECT_NEAR(*after({record}).number("outside_share"), 0.2, 1e-9);
}

TEST(Signals, SamplesShowHeapsTrendsAndFirstCalls) {
  auto record = evaluation({row("a", 1)});
  record.scenarios[0].candidate.samples_us = {200, 100, 101, 99, 150, 151, 149, 150, 100, 150};
  const auto signals = after({record});
  EXPECT_GT(*signals.number("bimodality_gap"), 3);
  EXPECT_NEAR(*signals.number("first_sample_ratio"), 200.0 / 149, 1e-9);
  EXPECT_GT(*signals.number("mean_median_gap"), 0);
  EXPECT_EQ(signals.number("n_repeats"), 10);
  EXPECT_FALSE(after({evaluation({row("a", 1)})}).knows("bimodality_gap"));
}

TEST(Signals, OneDisturbedSampleIsNoHeapAndOneDisturbedRowNoSlowStart) {
  auto record = evaluation({row("a", 1), row("b", 1), row("c", 1)});
  for (auto& scenario : record.scenarios)
    scenario.candidate.samples_us = {101, 100, 102, 99, 101, 100, 98, 102, 100, 101};
  record.scenarios[0].candidate.samples_us = {600, 100, 102, 99, 101, 100, 98, 102, 100, 101};
  const auto signals = after({record});
  EXPECT_LT(*signals.number("bimodality_gap"), 3);
  EXPECT_LT(*signals.number("first_sample_ratio"), 1.1);
  EXPECT_LT(*signals.number("mean_median_gap"), 0.05);
}

std::map<std::string, std::string> values(const char* length, const char* mask, const char* heads = "8/8") {
  return {{"Sk", length}, {"mask", mask}, {"heads", heads}, {"note", length}};
}

TEST(Signals, SwitchesAndSizesAreReadFromTheColumns) {
  const auto signals =
      after({evaluation({row("full-1", 1.0, values("100", "full")), row("causal-1", 0.4, values("100", "causal")),
                         row("full-2", 1.0, values("200", "full")), row("full-4", 1.0, values("400", "full"))})});
  EXPECT_NEAR(*signals.number("feature_gap_rel"), 0.6, 1e-9);
  EXPECT_EQ(signals.number("axes_unswept"), 1);  // heads
  EXPECT_EQ(signals.number("n_sizes"), 3);
  // Three sizes take the same time.
  EXPECT_EQ(signals.truth("nonmonotone"), false);
  EXPECT_NEAR(*signals.number("neighbour_drop"), 1, 1e-9);
  EXPECT_EQ(signals.truth("sizes_all_regular"), true);  // multiples of 100
  EXPECT_EQ(after({evaluation({row("a", 1, values("577", "full")), row("b", 1, values("512", "full"))})})
                .truth("sizes_all_regular"),
            false);
}

TEST(Signals, ASmallerProblemThatTakesLongerIsSeen) {
  const auto signals =
      after({evaluation({row("small", 0.5, values("128", "full")), row("large", 1.0, values("256", "full"))})});
  EXPECT_EQ(signals.truth("nonmonotone"), true);
  EXPECT_EQ(signals.truth("sizes_all_regular"), true);
  EXPECT_FALSE(signals.knows("feature_gap_rel"));
}

TEST(Signals, TheExponentOfTimeIsFittedAgainstTheBound) {
  std::vector<core::ScenarioResult> rows;
  for (const auto& [length, bound] : std::map<std::string, double>{{"128", 1}, {"256", 2}, {"512", 4}}) {
    rows.push_back(row("l" + length, 1.0, values(length.c_str(), "full")));
    rows.back().bound_us = bound;  // work grows, time stays
  }
  EXPECT_NEAR(*after({evaluation(rows)}).number("size_exponent_error"), 1, 1e-9);
  EXPECT_FALSE(after({evaluation({rows[0], rows[1]})}).knows("size_exponent_error"));
}

TEST(Signals, FeaturesOfTheOperatorThatTheGridNeverUses) {
  auto record = evaluation({row("a", 1,
                                {{"dtype", "fp32"},
                                 {"B", "1"},
                                 {"Hq/Hkv", "4/4"},
                                 {"Sq", "64"},
                                 {"Sk", "64"},
                                 {"D/Dv", "64/64"},
                                 {"mask", "full"},
                                 {"layout", "dense"}})});
  record.scenarios.push_back(record.scenarios[0]);
  record.scenarios[1].name = "b";
  record.operator_name = "attention_fwd";
  SignalTracker tracker;
  tracker.on_evaluation(1, record);
  EXPECT_GT(*tracker.current().number("scenario_features_never"), 5);
  const auto evidence = tracker.evidence("scenario_features_never");
  ASSERT_FALSE(evidence.empty());
  EXPECT_NE(evidence.facts[0].text.find("mask: sink"), std::string::npos);
  EXPECT_NE(evidence.facts[0].text.find("layout: leftpad"), std::string::npos);
  EXPECT_EQ(tracker.current().truth("batch_all_uniform"), true);
  EXPECT_FALSE(after({evaluation({row("a", 1), row("b", 1)})}).knows("scenario_features_never"));
}

TEST(Signals, RowsThatWereNotRunSayNothingAboutTheCandidate) {
  auto record = evaluation({row("a", 0.5), row("b", 1)});
  record.scenarios[1] = core::ScenarioResult{.name = "b", .category = "full"};
  EXPECT_EQ(after({record}).number("n_correct_frac"), 1);
  EXPECT_EQ(after({record}).truth("work_counted"), true);
  EXPECT_EQ(after({record}).number("n_configs_reported"), 1);
  record.scenarios.erase(record.scenarios.begin());
  EXPECT_FALSE(after({record}).knows("n_correct_frac"));
}

TEST(Axes, FeaturesAreNamesWithoutParameters) {
  EXPECT_EQ(features_of("win(127,0) cap50 sink"), (std::set<std::string>{"win", "cap", "sink"}));
  EXPECT_EQ(features_of("bf16/e4m3kv"), (std::set<std::string>{"bf16", "e4m3kv"}));
  EXPECT_EQ(features_of("paged64 append + rotary 32"), (std::set<std::string>{"paged", "append", "rotary"}));
}

TEST(Signals, TheMachineMayChangeUnderARun) {
  auto later = evaluation({row("a", 1)}, "b");
  later.provenance["processor"] = "Q";
  EXPECT_EQ(after({evaluation({row("a", 1)}), later}).truth("env_changed"), true);
  EXPECT_EQ(after({evaluation({row("a", 1)}), evaluation({row("a", 1)}, "b")}).truth("env_changed"), false);
  EXPECT_EQ(after({evaluation({row("a", 1)}), later}).number("devices_seen"), 2);
}

TEST(Signals, EditsAreCountedSinceWhatWasMeasured) {
  const auto signals =
      after_events({evaluated(1), edit("int x = 64;", "int x = 128;"), edit("half a;", "float a;\nfloat b;")});
  EXPECT_EQ(signals.number("edits_since_bench"), 2);
  EXPECT_EQ(signals.number("edits_since_test"), 2);
  EXPECT_EQ(signals.number("steps_since_eval"), 2);
  EXPECT_EQ(signals.truth("binary_stale"), true);
  EXPECT_EQ(signals.number("param_only_edits"), 1);
  EXPECT_EQ(signals.number("median_diff_lines"), 2.5);
  EXPECT_EQ(signals.truth("numeric_type_changed"), true);
  EXPECT_EQ(signals.truth("bench_edited_by_agent"), false);
  const auto then = after_events({edit("a", "b"), evaluated(1), edit("b", "c"), edit("c", "d"), evaluated(2)});
  EXPECT_EQ(then.number("edits_since_bench"), 0);
  EXPECT_EQ(then.number("changes_per_eval"), 2);
  EXPECT_EQ(then.truth("binary_stale"), false);
}

TEST(Signals, AnEditTakenBackAndABenchmarkWrittenAreSeen) {
  const auto signals = after_events({edit("one", "two"), edit("two", "one"), edit("x", "y", "tests/bench_kernel.py")});
  EXPECT_EQ(signals.number("reverted_recent"), 1);
  EXPECT_EQ(signals.truth("bench_edited_by_agent"), true);
  EXPECT_FALSE(after_events({evaluated(1)}).knows("bench_edited_by_agent"));
}

TEST(Signals, ToolsCommandsAndReading) {
  std::vector<trace::Event> events;
  for (int i = 0; i < 15; ++i) {
    const std::string id = fmt::format("c{}", i);
    events.push_back(event(
        "tool_call",
        {{"id", id}, {"tool", "Bash"}, {"kind", i == 0 ? "profiler" : "build"}, {"input", {{"command", "make"}}}}));
    events.push_back(event(
        "tool_result", {{"id", id}, {"text", fmt::format("k.cpp:{}: error: no such type", i)}, {"is_error", true}}));
  }
  const auto signals = after_events(events);
  EXPECT_EQ(signals.number("profiler_runs"), 1);
  EXPECT_EQ(signals.number("edits_since_profile"), 0);
  EXPECT_EQ(signals.truth("dispatch_seen"), true);
  EXPECT_EQ(signals.number("tool_kinds_recent"), 2);
  EXPECT_EQ(signals.number("same_command_fail"), 15);  // numbers aside, the outcomes are alike
  EXPECT_EQ(signals.number("own_source_read_share"), 0);
  EXPECT_EQ(signals.truth("research_done"), false);
  const auto few = after_events({events[0], events[1]});
  EXPECT_FALSE(few.knows("tool_kinds_recent"));
  EXPECT_FALSE(few.knows("own_source_read_share"));
}

TEST(Signals, OwnSourceReadAgainIsAShareOfWhatToolsShow) {
  std::vector<trace::Event> events;
  const std::string source = "int first_line_of_a_kernel = 1;\nint second_line_of_a_kernel = 2;\n";
  events.push_back(event("tool_call", {{"id", "w"},
                                       {"tool", "Write"},
                                       {"kind", "edit"},
                                       {"writes", {"k.cpp"}},
                                       {"input", {{"file_path", "k.cpp"}, {"content", source}}}}));
  for (int i = 0; i < 6; ++i) {
    events.push_back(event("tool_call", {{"id", std::to_string(i)},
                                         {"tool", "Read"},
                                         {"kind", "own_source_read"},
                                         {"reads", {"k.cpp"}},
                                         {"input", {{"file_path", "k.cpp"}}}}));
    events.push_back(event("tool_result", {{"id", std::to_string(i)}, {"text", source}}));
  }
  EXPECT_GT(*after_events(events).number("own_source_read_share"), 0.9);
}

TEST(Signals, ClaimsStandForTwoEvaluations) {
  const auto said =
      event("message",
            {{"role", "agent"}, {"text", "We are at 0.93x, a genuine ceiling. Let me check if more is possible."}});
  const auto signals = after_events({evaluated(1), said});
  EXPECT_EQ(signals.truth("claims_limit"), true);
  EXPECT_EQ(signals.truth("claims_infeasible"), false);
  EXPECT_EQ(signals.truth("claim_has_number"), true);
  EXPECT_EQ(signals.truth("claim_has_command"), false);
  EXPECT_EQ(signals.number("limit_age_edits"), 0);
  EXPECT_EQ(after_events({evaluated(1), said, evaluated(2), evaluated(3)}).truth("claims_limit"), false);
  EXPECT_FALSE(after_events({evaluated(1)}).knows("claims_limit"));
  EXPECT_EQ(after_events({event("claim", {{"text", "reached"}, {"claims", {"goal_reached"}}})}).truth("claims_done"),
            true);
}

TEST(Signals, AClaimOfDoneFallsWithTheNextEdit) {
  const auto said = event("message", {{"role", "agent"}, {"text", "The work is complete."}});
  EXPECT_EQ(after_events({said}).truth("claims_done"), true);
  EXPECT_EQ(after_events({said, edit("a", "b")}).truth("claims_done"), false);
}

TEST(Signals, BudgetQuestionsAndCompactions) {
  const auto start =
      event("run_start", {{"goal", "geomean >= 0.9 and correct == all"}, {"budget", {{"evaluations", 4}}}});
  auto signals = after_events({start, evaluated(1)});
  EXPECT_EQ(signals.number("goal"), 0.9);
  EXPECT_EQ(signals.number("budget_left"), 0.75);
  EXPECT_EQ(signals.number("open_questions"), 0);
  EXPECT_EQ(signals.number("heldout_evals"), 0);
  signals = after_events({start, event("question", {{"id", "q"}}),
                          event("answer", {{"question", "q"}, {"answered", false}}), event("compaction", {})});
  EXPECT_EQ(signals.number("open_questions"), 1);
  EXPECT_EQ(signals.number("compactions"), 1);
  signals = after_events({start, event("question", {{"id", "q"}})});
  EXPECT_FALSE(signals.knows("open_questions"));  // nobody has said yet whether it was answered
}

TEST(Signals, LevelsOfTheConstantThatChanged) {
  const auto with = [](int number, int tile) {
    return event(
        "evaluation",
        {{"number", number}, {"outcome", "judged"}, {"memo", {{"settings", {{"TILE", tile}, {"UNROLL", 2}}}}}});
  };
  EXPECT_EQ(after_events({with(1, 32), with(2, 64), with(3, 128)}).number("levels_tested"), 3);
  EXPECT_FALSE(after_events({with(1, 32)}).knows("levels_tested"));
}

TEST(Signals, LiteralsOfTheGridInConditionsAreSeen) {
  SignalTracker tracker;
  tracker.on_evaluation(1, evaluation({row("a", 1, values("577", "full"))}));
  tracker.on_event(edit("return;", "if (length == 577) return;"));
  EXPECT_EQ(tracker.current().truth("shape_literals"), true);
  SignalTracker other;
  other.on_evaluation(1, evaluation({row("a", 1, values("577", "full"))}));
  other.on_event(edit("return;", "if (length == 64) return;"));
  EXPECT_EQ(other.current().truth("shape_literals"), false);
}

TEST(Signals, SlowRowsAreExplainedByACauseWithANumber) {
  SignalTracker tracker;
  tracker.on_event(evaluated(1));
  tracker.on_evaluation(1, evaluation({row("rope-a", 0.5), row("rope-b", 0.5)}));
  EXPECT_EQ(tracker.current().number("n_unexplained_slow"), 2);
  tracker.on_event(
      event("message", {{"role", "agent"}, {"text", "rope-a is slow because 40 % of its keys are masked."}}));
  EXPECT_EQ(tracker.current().number("n_unexplained_slow"), 1);
}

TEST(Signals, TheBestVersionIsKeptWhereTheDriverCommits) {
  SignalTracker tracker;
  tracker.on_event(evaluated(1));
  tracker.on_evaluation(1, evaluation({row("a", 0.5)}));
  EXPECT_EQ(tracker.current().truth("best_tagged"), true);
  SignalTracker records;
  records.on_evaluation(1, evaluation({row("a", 0.5)}));
  EXPECT_FALSE(records.current().knows("best_tagged"));
}

TEST(Evidence, NamesTheWorstScenarioAsFocus) {
  SignalTracker tracker;
  tracker.on_evaluation(3, evaluation({row("slow", 0.25), row("fast", 1.0)}));
  const auto evidence = tracker.evidence("ratio_min");
  ASSERT_FALSE(evidence.empty());
  EXPECT_EQ(evidence.focus, "slow");
  EXPECT_EQ(fact_line(evidence.facts[0]), "slow: 0.25x of the fastest, onednn (0.247 to 0.253) (evaluation 3)");
  EXPECT_EQ(evidence.slots.at("config"), "slow");
  EXPECT_TRUE(tracker.evidence("velocity").empty());
}

TEST(Evidence, OfSeveralSignalsSaysEachFactOnce) {
  SignalTracker tracker({.goal = "geomean >= 1"});
  tracker.on_evaluation(1, evaluation({row("slow", 0.25), row("fast", 1.0)}));
  const auto evidence = tracker.evidence(std::vector<std::string>{"ratio_min", "loggap_top3_share", "geomean"});
  EXPECT_EQ(evidence.facts.size(), 3u);
}

TEST(SignalTable, HoldsWhatIsComputedAndNothingElse) {
  // Everything at once: each computed signal must come out of some history.
  SignalTracker tracker({.goal = "geomean >= 1"});
  std::vector<trace::Event> events = {event("run_start", {{"goal", "geomean >= 1"}, {"budget", {{"minutes", 5}}}})};
  for (int i = 0; i < 16; ++i) {
    const std::string id = fmt::format("t{}", i);
    events.push_back(event(
        "tool_call",
        {{"id", id}, {"tool", "Bash"}, {"kind", "profiler"}, {"input", {{"command", "ncu"}}}, {"strategy", "tiles"}}));
    events.push_back(event("tool_result", {{"id", id}, {"text", "error: 12.5 us measured"}}));
  }
  events.push_back(edit("if (n == 1) half x;", "if (n == 128) float x;"));
  for (int i = 0; i < 10; ++i)
    events.push_back(
        event("message",
              {{"role", "agent"},
               {"text",
                "Options:\n1. tiles, 5 % each\n2. unroll, 3 %\nWe hit the ceiling of 12.5 us because of 7 reasons."}}));
  for (const auto& one : events) tracker.on_event(one);
  for (int number = 1; number <= 3; ++number) {
    std::vector<core::ScenarioResult> rows;
    for (const auto& [length, bound] : std::map<std::string, double>{{"128", 1}, {"256", 2}, {"512", 4}})
      for (const char* mask : {"full", "causal"}) {
        rows.push_back(row(length + mask, 0.5 + 0.1 * number,
                           {{"dtype", "fp32"}, {"Sq", "1"}, {"Sk", length}, {"mask", mask}, {"layout", "dense"}}));
        rows.back().bound_us = bound;
        rows.back().candidate.host_us = 1000;
        rows.back().candidate.samples_us.resize(12, 100);
        *rows.back().baselines["onednn"].time_us += number;
      }
    auto record = evaluation(rows, std::to_string(number));
    record.operator_name = "attention_fwd";
    record.provenance["other_processes"] = 0;
    tracker.on_event(
        event("evaluation",
              {{"number", number}, {"outcome", "judged"}, {"commit", "c"}, {"memo", {{"settings", {{"T", number}}}}}}));
    tracker.on_evaluation(number, record);
  }
  tracker.on_event(
      event("message", {{"role", "agent"}, {"text", "We hit the ceiling of 12.5 us because of 7 reasons."}}));
  const auto signals = tracker.current();
  for (const auto& info : kSignalList) EXPECT_EQ(info.computed, signals.knows(info.name)) << info.name;
}

TEST(Claims, AreNotReadFromQuestionsOrPlans) {
  EXPECT_TRUE(claims_in("Is this the ceiling?").empty());
  EXPECT_TRUE(claims_in("Let me see whether the goal is met.").empty());
  EXPECT_EQ(claims_in("The goal is met: 1.02x.").count("done"), 1u);
  EXPECT_EQ(claims_in("That change had no effect.").count("no_effect"), 1u);
  EXPECT_TRUE(asks_permission("Two ways are open. Should I go on?"));
  EXPECT_FALSE(asks_permission("I go on."));
}

TEST(EditLook, SeesPatchesAndReplacements) {
  const auto patch = look_at_edit("apply_patch", Json{{"input",
                                                       "*** Begin Patch\n*** Update File: k.cpp\n@@\n-constexpr int "
                                                       "kTile = 64;\n+constexpr int kTile = 128;\n*** End Patch"}});
  EXPECT_TRUE(patch.literals_only);
  EXPECT_EQ(patch.changed_lines, 2);
  const auto whole = look_at_edit("Write", Json{{"file_path", "k.cpp"}, {"content", "a\nb\n"}});
  EXPECT_FALSE(whole.literals_only);
  EXPECT_FALSE(whole.knows_old);
}

TEST(ReadRun, FollowsAFolderOfRecordsAndARun) {
  base::TempFolder folder;
  core::write_evaluation(evaluation({row("a", 0.5)}), folder.path() / "0001.json");
  core::write_evaluation(evaluation({row("a", 0.6)}, "b"), folder.path() / "0002.json");
  EXPECT_EQ(read_run(folder.path()).current().number("n_evals"), 2);
  base::TempFolder run;
  base::make_folder(run.path() / "evaluations");
  core::write_evaluation(evaluation({row("a", 0.5)}), run.path() / "evaluations" / "0001.json");
  {
    trace::TraceWriter writer(run.path() / "trace.jsonl");
    writer.append("run_start", "main", {{"goal", "geomean >= 2"}});
    writer.append("evaluation", "main", {{"number", 1}, {"record", "evaluations/0001.json"}, {"outcome", "judged"}});
  }
  const auto signals = read_run(run.path()).current();
  EXPECT_EQ(signals.number("goal"), 2);
  EXPECT_NEAR(*signals.number("geomean"), 0.5, 1e-9);
  base::TempFolder empty;
  EXPECT_THROW(read_run(empty.path()), Error);
  EXPECT_THROW(read_run("/no/such/run"), Error);
}

TEST(Speed, SignalsOfALongTraceComeFromWhatWasKept) {
  SignalTracker tracker;
  for (int i = 0; i < 100000; ++i)
    tracker.on_event(
        event("tool_call",
              {{"id", std::to_string(i)}, {"tool", "Bash"}, {"kind", "build"}, {"input", {{"command", "make"}}}}));
  const auto signals = tracker.current();
  EXPECT_EQ(signals.number("steps_since_eval"), 100000);
}

}  // namespace
}  // namespace ks::signals
