#include "steering/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "steering/questioner.h"

namespace ks::steering {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string entry(const std::string& id, const std::string& text, const std::string& trigger,
                  const std::string& more = "") {
  return fmt::format(
      "[[question]]\nid = \"{}\"\ntext = \"{}\"\ntrigger = \"{}\"\nevidence = [\"geomean\"]\nexpects = \"x\"\n"
      "leak_risk = \"low: x\"\nsource = \"own\"\n{}\n",
      id, text, trigger, more);
}

/// A small bank: two entries of the course, one of a claim, one of validity, and three for a plateau.
Bank small_bank() {
  const base::TempFolder folder;
  const auto write = [&](const char* category, const std::string& text) {
    base::write_file_atomically(folder.path() / (std::string(category) + ".toml"), text);
  };
  write("gap_triage", entry("gt-spread", "Which of the rows are holding the average down?", "ratio_spread > 2") +
                          entry("gt-few", "Is this loss spread over many rows of the grid?", "n_configs >= 8"));
  write("challenge_a_limit", entry("cl-claim", "What is the measurement that shows the limit?", "claims_limit"));
  write("measurement_check",
        entry("mc-above", "What is true if both figures are to stand?", "any_above_bound", "invalidity = true") +
            entry("mc-flat", "Has the curve of the evaluations become too fine to see?", "evals_since_improve >= 5"));
  write("agent_process", entry("ap-flat", "What did each of the attempts teach?", "evals_since_improve >= 5"));
  write("strategy_options",
        entry("so-flat", "Which ways are there to close the distance?", "evals_since_improve >= 5"));
  return load_bank(folder.path());
}

SteeringState state_with(const std::map<std::string, signals::Value>& values) {
  SteeringState state;
  for (const auto& [name, value] : values) state.signals.set(name, value, "evaluation 9");
  state.n_evaluations = 9;
  state.evidence = [evaluation = state.n_evaluations](const std::vector<std::string>&) {
    signals::Evidence evidence;
    evidence.facts.push_back({fmt::format("geomean 0.5 at {}", evaluation), "evaluation 9"});
    return evidence;
  };
  return state;
}

std::string chosen(const Bank& bank, const SteeringState& state) {
  const auto selection = select_question(bank, state);
  return selection.message ? selection.message->id : "";
}

std::string gate_of(const Selection& selection, const std::string& id) {
  for (const auto& one : selection.considered)
    if (one.question->id == id) return one.gate;
  return "does not fire";
}

TEST(Select, AsksNothingWhereNothingFires) {
  EXPECT_EQ(chosen(small_bank(), state_with({{"ratio_spread", 1.5}})), "");
  EXPECT_EQ(chosen(small_bank(), state_with({})), "");
}

TEST(Select, PutsValidityBeforeClaimsAndClaimsBeforeTheCourse) {
  const Bank bank = small_bank();
  std::map<std::string, signals::Value> values = {
      {"ratio_spread", 90.0}, {"claims_limit", true}, {"any_above_bound", true}};
  EXPECT_EQ(chosen(bank, state_with(values)), "mc-above");
  values["any_above_bound"] = false;
  EXPECT_EQ(chosen(bank, state_with(values)), "cl-claim");
  values["claims_limit"] = false;
  EXPECT_EQ(chosen(bank, state_with(values)), "gt-spread");
}

TEST(Select, PrefersWhatIsFurtherPastItsThreshold) {
  const Bank bank = small_bank();
  EXPECT_EQ(chosen(bank, state_with({{"ratio_spread", 3.0}, {"n_configs", 40.0}})), "gt-few");
  EXPECT_EQ(chosen(bank, state_with({{"ratio_spread", 30.0}, {"n_configs", 10.0}})), "gt-spread");
}

TEST(Select, APlateauGoesFromLessonsToMeasurementsToOptions) {
  const Bank bank = small_bank();
  SteeringState state = state_with({{"evals_since_improve", 6.0}});
  std::vector<std::string> order;
  for (int i = 0; i < 3; ++i) {
    const auto selection = select_question(bank, state);
    ASSERT_TRUE(selection.message) << selection.explain();
    order.push_back(selection.message->id);
    state.asked.push_back(log_entry(*selection.message, state));
    state.n_evaluations += 2;
    state.signals.set("evals_since_improve", 8.0 + 2 * i, "evaluation 9");
  }
  EXPECT_EQ(order, (std::vector<std::string>{"ap-flat", "mc-flat", "so-flat"}));
}

TEST(Select, LetsWorkThatImprovesGoOnUnlessSomethingIsFarOff) {
  const Bank bank = small_bank();
  std::map<std::string, signals::Value> values = {{"ratio_spread", 4.0}, {"evals_since_improve", 0.0}};
  EXPECT_EQ(chosen(bank, state_with(values)), "");
  values["evals_since_improve"] = 1.0;
  EXPECT_EQ(chosen(bank, state_with(values)), "gt-spread");
  values["evals_since_improve"] = 0.0;
  values["ratio_spread"] = 90.0;
  EXPECT_EQ(chosen(bank, state_with(values)), "gt-spread");
}

TEST(Select, APlateauAfterTheGoalIsMetCallsForNothing) {
  const Bank bank = small_bank();
  EXPECT_EQ(chosen(bank, state_with({{"evals_since_improve", 9.0}, {"geomean", 1.1}, {"goal", 1.0}})), "");
  EXPECT_EQ(chosen(bank, state_with({{"evals_since_improve", 9.0}, {"geomean", 0.9}, {"goal", 1.0}})), "ap-flat");
}

TEST(Select, LeavesTheAgentAloneWhileAToolRunsOrAFreshEditIsMeasured) {
  const Bank bank = small_bank();
  SteeringState state = state_with({{"ratio_spread", 9.0}});
  state.is_tool_running = true;
  EXPECT_EQ(chosen(bank, state), "");
  state.is_tool_running = false;
  state.is_measurement_under_way = true;
  state.steps_since_edit = 1;
  EXPECT_EQ(chosen(bank, state), "");
  state.steps_since_edit = 3;
  EXPECT_EQ(chosen(bank, state), "gt-spread");
}

TEST(Select, KeepsItsDistanceUnlessAStopIsRequested) {
  const Bank bank = small_bank();
  SteeringState state = state_with({{"ratio_spread", 9.0}});
  state.asked.push_back({"other", "agent_process", 8, "", true});
  EXPECT_EQ(chosen(bank, state), "");
  EXPECT_THAT(select_question(bank, state).explain(), HasSubstr("1 evaluations since the last question"));
  EXPECT_TRUE(select_question(bank, state, {}, true).message);
  state.is_stop_requested = true;
  EXPECT_EQ(chosen(bank, state), "gt-spread");
}

TEST(Select, AnEntryRestsAndThenNeedsNewEvidence) {
  const Bank bank = small_bank();
  SteeringState state = state_with({{"ratio_spread", 9.0}});
  const auto first = select_question(bank, state);
  ASSERT_TRUE(first.message);
  state.asked.push_back(log_entry(*first.message, state));
  state.n_evaluations += 5;
  EXPECT_THAT(gate_of(select_question(bank, state), "gt-spread"), HasSubstr("it rests"));
  state.n_evaluations += 5;
  EXPECT_EQ(gate_of(select_question(bank, state), "gt-spread"), "it was asked with the same evidence");
  state.evidence = [](const std::vector<std::string>&) {
    signals::Evidence evidence;
    evidence.facts.push_back({"geomean 0.6", "evaluation 19"});
    return evidence;
  };
  EXPECT_EQ(chosen(bank, state), "gt-spread");
}

TEST(Select, TwoUnansweredQuestionsCloseTheirCategoryForTenEvaluations) {
  const Bank bank = small_bank();
  SteeringState state = state_with({{"ratio_spread", 9.0}});
  state.asked = {{"gt-x", "gap_triage", 3, "", false}, {"gt-y", "gap_triage", 5, "", false}};
  EXPECT_THAT(gate_of(select_question(bank, state), "gt-spread"), HasSubstr("category is closed"));
  state.asked[1].answered = true;
  EXPECT_EQ(chosen(bank, state), "gt-spread");
  state.asked[1].answered = false;
  state.n_evaluations = 15;
  EXPECT_EQ(chosen(bank, state), "gt-spread");
}

TEST(Select, ATieGoesToTheCategoryAskedLeastRecentlyThenToTheSeed) {
  const base::TempFolder folder;
  base::write_file_atomically(folder.path() / "gap_triage.toml",
                              entry("gt-a", "Which of the rows are holding the average down?", "claims_done"));
  base::write_file_atomically(folder.path() / "agent_process.toml",
                              entry("ap-a", "What is it that makes the work complete?", "claims_done"));
  const Bank bank = load_bank(folder.path());
  SteeringState state = state_with({{"claims_done", true}});
  state.asked = {{"gt-old", "gap_triage", 2, "", true}};
  EXPECT_EQ(chosen(bank, state), "ap-a");
  state.asked = {{"ap-old", "agent_process", 2, "", true}};
  EXPECT_EQ(chosen(bank, state), "gt-a");
  state.asked.clear();
  std::set<std::string> by_seed;
  for (state.seed = 0; state.seed < 20; ++state.seed) {
    by_seed.insert(chosen(bank, state));
    EXPECT_EQ(chosen(bank, state), chosen(bank, state));
  }
  EXPECT_EQ(by_seed.size(), 2u);
}

TEST(Select, DoesNotSendWhatTheLintRefuses) {
  const Bank bank = small_bank();
  SteeringState state = state_with({{"ratio_spread", 9.0}});
  state.evidence = [](const std::vector<std::string>&) {
    signals::Evidence evidence;
    evidence.facts.push_back({"Have you tried larger tiles", "evaluation 9"});
    return evidence;
  };
  const auto selection = select_question(bank, state);
  EXPECT_FALSE(selection.message);
  EXPECT_THAT(gate_of(selection, "gt-spread"), HasSubstr("the lint refused"));
}

TEST(Select, ExplainsWhatItConsidered) {
  const auto text = select_question(small_bank(), state_with({{"ratio_spread", 9.0}, {"n_configs", 10.0}})).explain();
  EXPECT_THAT(text, HasSubstr("> gt-spread"));
  EXPECT_THAT(text, HasSubstr("ratio_spread (9) > 2: true"));
  EXPECT_THAT(text, HasSubstr("5 entries do not fire"));
}

/// A state in which much fires, for the bank of this project.
SteeringState busy_state() {
  SteeringState state = state_with({{"ratio_spread", 9.0},
                                    {"n_configs", 26.0},
                                    {"geomean", 0.48},
                                    {"goal", 1.0},
                                    {"evals_since_improve", 9.0},
                                    {"ratio_min", 0.1},
                                    {"ratio_max", 1.2},
                                    {"claims_limit", true},
                                    {"bound_known", true},
                                    {"frac_of_bound", 0.3},
                                    {"outside_share", 0.2},
                                    {"n_evals", 30.0},
                                    {"budget_left", 0.2},
                                    {"noise_known", true},
                                    {"effect_rel", 0.004},
                                    {"noise_rel", 0.01}});
  state.evidence = [](const std::vector<std::string>&) {
    signals::Evidence evidence;
    evidence.facts.push_back({"rope-prefill: 0.1x of the fastest", "evaluation 9"});
    for (const char* slot : {"config", "config_a", "config_b"}) evidence.slots[slot] = "rope-prefill";
    evidence.slots["claim"] = "a genuine ceiling";
    evidence.focus = "rope-prefill";
    return evidence;
  };
  state.names = {"rope-prefill"};
  return state;
}

TEST(Select, WeighsEveryEntryThatFiresInABusyState) {
  const Bank bank = load_bank(bank_folder());
  const SteeringState state = busy_state();
  select_question(bank, state);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kRounds = 20;
  size_t fired = 0;
  for (int i = 0; i < kRounds; ++i) fired = select_question(bank, state).considered.size();
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() / kRounds;
  printf("selection: %.2f ms, %zu entries fire\n", ms, fired);
  EXPECT_GT(fired, 20u);
}

/// The category that the bank of this project asks in first.
std::string first_category(const std::map<std::string, signals::Value>& values) {
  static const Bank bank = load_bank(bank_folder());
  SteeringState state = busy_state();
  state.signals = {};
  for (const auto& [name, value] : values) state.signals.set(name, value, "evaluation 9");
  const auto selection = select_question(bank, state);
  return selection.message ? selection.message->category : "none";  // selection.explain() says why
}

TEST(BankOfThisProject, AsksAboutTheGapWhereAFewRowsAreFarBehind) {
  EXPECT_EQ(first_category({{"geomean", 0.3},
                            {"goal", 1.0},
                            {"ratio_min", 0.01},
                            {"ratio_max", 1.1},
                            {"ratio_spread", 110.0},
                            {"n_configs", 12.0},
                            {"n_configs_reported", 12.0},
                            {"n_correct_frac", 1.0},
                            {"n_evals", 9.0},
                            {"noise_known", true},
                            {"noise_rel", 0.01},
                            {"effect_rel", 0.03},
                            {"evals_since_improve", 0.0},
                            {"loggap_top3_share", 0.9}}),
            "gap_triage");
}

TEST(BankOfThisProject, ChallengesALimitThatLeavesTimeOutside) {
  const std::string category = first_category({{"geomean", 0.7},
                                               {"goal", 1.0},
                                               {"claims_limit", true},
                                               {"outside_share", 0.2},
                                               {"ratio_min", 0.6},
                                               {"ratio_max", 0.9},
                                               {"ratio_spread", 1.5},
                                               {"n_correct_frac", 1.0},
                                               {"noise_known", true},
                                               {"noise_rel", 0.01},
                                               {"n_evals", 9.0},
                                               {"evals_since_improve", 3.0}});
  EXPECT_TRUE(category == "challenge_a_limit" || category == "bound_differencing") << category;
}

TEST(BankOfThisProject, DoubtsTheGridWhereAllIsRightAndCalledDone) {
  EXPECT_EQ(first_category({{"geomean", 1.2},
                            {"goal", 1.0},
                            {"claims_done", true},
                            {"n_correct_frac", 1.0},
                            {"axes_unswept", 4.0},
                            {"scenario_features_never", 2.0},
                            {"ratio_min", 1.0},
                            {"ratio_max", 1.4},
                            {"ratio_spread", 1.4},
                            {"n_configs", 40.0},
                            {"noise_known", true},
                            {"noise_rel", 0.01},
                            {"n_evals", 9.0},
                            {"evals_since_improve", 2.0}}),
            "benchmark_validity");
}

TEST(BankOfThisProject, AsksHowAClaimOfTheGoalFarBelowItIsMeant) {
  const std::string category = first_category({{"geomean", 0.48},
                                               {"goal", 1.0},
                                               {"claims_done", true},
                                               {"n_correct_frac", 1.0},
                                               {"axes_unswept", 4.0},
                                               {"ratio_min", 0.3},
                                               {"ratio_max", 0.7},
                                               {"ratio_spread", 2.3},
                                               {"n_configs", 26.0},
                                               {"noise_known", true},
                                               {"noise_rel", 0.01},
                                               {"n_evals", 9.0},
                                               {"evals_since_improve", 0.0}});
  EXPECT_TRUE(category == "agent_process" || category == "measurement_check") << category;
}

TEST(BankOfThisProject, AsksNothingWhereNothingIsWrong) {
  EXPECT_EQ(first_category({{"geomean", 0.8},
                            {"goal", 1.0},
                            {"n_correct_frac", 1.0},
                            {"ratio_min", 0.7},
                            {"ratio_max", 0.9},
                            {"ratio_spread", 1.3},
                            {"n_configs", 12.0},
                            {"noise_known", true},
                            {"n_configs_reported", 12.0},
                            {"noise_rel", 0.01},
                            {"effect_rel", 0.08},
                            {"n_evals", 9.0},
                            {"evals_since_improve", 0.0},
                            {"geomean_up", true},
                            {"edits_since_bench", 0.0}}),
            "none");
}

TEST(Questioners, SpeakAtTheSameMomentsInTheSameForm) {
  const Bank bank = load_bank(bank_folder());
  std::map<std::string, std::vector<int>> moments;
  for (const std::string name : {"bank", "neutral", "shuffled"}) {
    const auto questioner = make_questioner(name, bank);
    SteeringState state = busy_state();
    for (state.n_evaluations = 10; state.n_evaluations < 30; ++state.n_evaluations) {
      const auto message = questioner->next(state);
      if (!message) continue;
      moments[name].push_back(state.n_evaluations);
      EXPECT_FALSE(message->facts.empty());
      state.asked.push_back(log_entry(*message, state));
    }
  }
  EXPECT_GE(moments["bank"].size(), 5u);
  EXPECT_EQ(moments["neutral"], moments["bank"]);
  EXPECT_EQ(moments["shuffled"], moments["bank"]);
}

TEST(Questioners, NoneSaysNothingAndNeutralNamesNoRow) {
  const Bank bank = load_bank(bank_folder());
  EXPECT_FALSE(make_questioner("none", bank)->next(busy_state()));
  const auto neutral = make_questioner("neutral", bank)->next(busy_state());
  ASSERT_TRUE(neutral);
  EXPECT_EQ(neutral->question, "Continue towards the goal.");
  EXPECT_EQ(neutral->focus, "");
}

TEST(Questioners, ShuffledFollowsTheSeed) {
  const Bank bank = load_bank(bank_folder());
  std::set<std::string> ids;
  SteeringState state = busy_state();
  for (state.seed = 0; state.seed < 12; ++state.seed) ids.insert(make_questioner("shuffled", bank)->next(state)->id);
  EXPECT_GE(ids.size(), 4u);
}

TEST(Questioners, HintsGiveTheLinesOfTheirFileInOrderAndThenNothing) {
  const Bank bank = load_bank(bank_folder());
  const base::TempFolder folder;
  const auto path = folder.path() / "hints.txt";
  base::write_file_atomically(path, "# two hints\nUse larger tiles.\n\nUnroll the loop.\n");
  const auto hints = make_questioner("hints", bank, {.hints_path = path.string()});
  SteeringState state = busy_state();
  std::vector<std::string> said;
  for (; state.n_evaluations < 60; ++state.n_evaluations)
    if (const auto message = hints->next(state)) {
      said.push_back(message->question);
      state.asked.push_back(log_entry(*message, state));
    }
  EXPECT_EQ(said, (std::vector<std::string>{"Use larger tiles.", "Unroll the loop."}));
  base::write_file_atomically(path, "# nothing\n");
  EXPECT_THROW(make_questioner("hints", bank, {.hints_path = path.string()}), Error);
  EXPECT_THROW(make_questioner("hints", bank), Error);
}

TEST(Questioners, AnUnknownNameNamesTheNearest) {
  const Bank bank = small_bank();
  try {
    make_questioner("shufled", bank);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("did you mean shuffled?"));
  }
}

}  // namespace
}  // namespace ks::steering
