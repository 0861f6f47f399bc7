// Recorded histories, replayed: what the bank chooses at the last evaluation of each. tests/histories/record made them
// on the CPU; expect.json says the kinds of question that are right there, and what its facts must show.
#include <gmock/gmock.h>

#include <regex>
#include <sstream>

#include "run/asker.h"
#include "run/coverage.h"
#include "steering/lint.h"
#include "trace/trace_reader.h"

namespace ks::run {
namespace {

namespace fs = base::fs;

fs::path histories_folder() {
  return base::project_root() / "tests" / "histories";
}

std::vector<std::string> history_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(histories_folder()))
    if (fs::exists(entry.path() / "expect.json")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A history up to its last evaluation, in a folder of its own: what came after is the judge's.
void copy_until_last_evaluation(const fs::path& history, const fs::path& folder) {
  std::vector<std::string> lines = base::read_lines(history / "trace.jsonl");
  while (!lines.empty() && lines.back().find("\"kind\":\"evaluation\"") == std::string::npos) lines.pop_back();
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  base::write_file_atomically(folder / "trace.jsonl", text);
  fs::create_directory_symlink(history / "evaluations", folder / "evaluations");
}

bool claims_to_be_done(const steering::SteeringState& state) {
  return state.signals.truth("claims_done").value_or(false);
}

/// What the bank chooses there.
steering::Selection choice_at_end(const fs::path& history) {
  const base::TempFolder folder("history");
  copy_until_last_evaluation(history, folder.path());
  static const steering::Bank bank = steering::load_bank(steering::bank_folder());
  SteeringFeed feed(folder.path(), 1);
  auto state = feed.state(false);
  state.is_stop_requested = claims_to_be_done(state);
  return steering::select_question(bank, state);
}

class History : public testing::TestWithParam<std::string> {};

TEST_P(History, IsMetWithTheRightKindOfQuestionOrWithNone) {
  const fs::path history = histories_folder() / GetParam();
  const Json expect = base::read_json_file((history / "expect.json").string());
  const auto selection = choice_at_end(history);
  if (expect.at("kinds").empty()) {
    EXPECT_FALSE(selection.message) << selection.explain();
    return;
  }
  ASSERT_TRUE(selection.message) << selection.explain();
  const auto& message = *selection.message;
  EXPECT_THAT(expect.at("kinds").get<std::vector<std::string>>(), testing::Contains(message.category))
      << message.text() << "\n"
      << selection.explain();
  for (const auto& pattern : expect.at("facts"))
    EXPECT_TRUE(std::regex_search(message.text(), std::regex(pattern.get<std::string>(), std::regex::icase)))
        << pattern << " is not in:\n"
        << message.text() << "\n"
        << selection.explain();
  EXPECT_TRUE(steering::lint_leaks(message.question, message.names).empty()) << message.question;
}

TEST_P(History, EndsWithTheDecisionThatItsFiguresCallFor) {
  const fs::path history = histories_folder() / GetParam();
  const Json expect = base::read_json_file((history / "expect.json").string());
  std::string decision;
  for (const auto& event : trace::read_trace(history / "trace.jsonl"))
    if (event.kind == "judge") decision = base::value_or<std::string>(event.body, "decision", "");
  EXPECT_FALSE(decision.empty());
  EXPECT_EQ(decision, base::value_or(expect, "judge", decision));
}

INSTANTIATE_TEST_SUITE_P(Recorded, History, testing::ValuesIn(history_names()),
                         [](const auto& info) { return info.param; });

TEST(Histories, NoEntryThatFiresInThemIsUnsayableThroughout) {
  const steering::Bank bank = steering::load_bank(steering::bank_folder());
  const auto coverage = coverage_of(bank, {histories_folder()}, 3);
  int fired = 0;
  for (const auto& [id, entry] : coverage.entries) {
    fired += entry.fired > 0;
    if (entry.fired > 0) {
      EXPECT_LT(entry.unsayable, entry.fired) << id;
    }
  }
  std::printf("figure: %d of %zu entries of the bank fire somewhere in %d histories\n", fired, bank.questions.size(),
              coverage.runs);
  EXPECT_GE(fired, 80);
}

TEST(Histories, AreThirteenWithHalfOfTheLastEightInOrder) {
  int in_order = 0;
  for (const auto& name : history_names())
    in_order += base::read_json_file((histories_folder() / name / "expect.json").string()).at("kinds").empty();
  EXPECT_EQ(history_names().size(), 13u);
  EXPECT_EQ(in_order, 4);
}

}  // namespace
}  // namespace ks::run
