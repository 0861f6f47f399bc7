#include "steering/bank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "steering/lint.h"

namespace ks::steering {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGood = R"(
[[question]]
id = "gt-a"
text = "What is it about {config} that holds the average down?"
trigger = "ratio_min < 0.5"
evidence = ["ratio_min"]
expects = "a property"
leak_risk = "low: none"
source = "own"
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

/// The problems of a bank of one file.
std::string problems(const std::string& toml, const std::string& file = "gap_triage.toml") {
  const base::TempFolder folder;
  base::write_file_atomically(folder.path() / file, toml);
  BankReport report;
  check_bank(folder.path(), report);
  std::string all;
  for (const auto& problem : report.problems) all += problem + "\n";
  return all;
}

TEST(Bank, OfThisProjectIsCleanAndCoversEveryCategory) {
  BankReport report;
  const auto begin = std::chrono::steady_clock::now();
  const Bank bank = check_bank(bank_folder(), report);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const auto& problem : report.problems) ADD_FAILURE() << problem;
  EXPECT_EQ(report.files, 8);
  int reachable = 0;
  for (size_t i = 0; i < kCategories.size(); ++i) {
    EXPECT_GE(report.reachable[i], 3) << kCategories[i];
    reachable += report.reachable[i];
    printf("%-20s %3d questions, %3d reachable\n", std::string(kCategories[i]).c_str(), report.by_category[i],
           report.reachable[i]);
  }
  printf("bank: %d questions, %d reachable with computed signals, checked in %.3f s\n", report.questions, reachable,
         seconds);
  EXPECT_GE(reachable, 24);
  EXPECT_EQ(bank.questions.size(), static_cast<size_t>(report.questions));
}

TEST(Bank, AGoodEntryHasNoProblem) {
  EXPECT_EQ(problems(kGood), "");
}

TEST(Bank, ProblemsNameFileLineAndMend) {
  EXPECT_THAT(problems(with(kGood, "ratio_min <", "ratio_mn <")),
              HasSubstr("gap_triage.toml:5:12: unknown signal \"ratio_mn\" (did you mean ratio_min?)"));
  EXPECT_THAT(problems(with(kGood, "0.5", "1 / 0")), HasSubstr("gap_triage.toml:5:28: this divides by zero"));
  EXPECT_THAT(problems(with(kGood, "< 0.5", "< 0.5 AND ratio_min > 1")), HasSubstr("contradicts itself"));
  EXPECT_THAT(problems(with(kGood, "expects", "expect")), HasSubstr("unknown key \"expect\" (did you mean expects?)"));
  EXPECT_THAT(problems(with(kGood, "source = \"own\"", "")), HasSubstr("the key \"source\" is missing"));
  EXPECT_THAT(problems(with(kGood, "[\"ratio_min\"]", "[]")), HasSubstr("at least one"));
  EXPECT_THAT(problems(with(kGood, "[\"ratio_min\"]", "[\"ratio\"]")), HasSubstr("no known signal"));
  EXPECT_THAT(problems(std::string(kGood) + kGood), HasSubstr("the id \"gt-a\" is taken by"));
  EXPECT_THAT(problems(kGood, "gap.toml"), HasSubstr("named after its category"));
  EXPECT_THAT(problems("[[question]\n"), HasSubstr("gap_triage.toml:1: malformed TOML"));
  EXPECT_THAT(problems("question = 3\n"), HasSubstr("there is no [[question]]"));
}

TEST(Bank, ASlotNeedsEvidenceThatFillsIt) {
  EXPECT_THAT(problems(with(kGood, "{config}", "{axis}")), HasSubstr("nothing in its evidence fills the slot {axis}"));
  EXPECT_THAT(problems(with(kGood, "{config}", "{geomean}")), HasSubstr("fills the slot {geomean}"));
  EXPECT_THAT(problems(with(kGood, "{config}", "{colour}")), HasSubstr("unknown slot {colour}"));
  EXPECT_THAT(problems(with(kGood, "{config}", "{config")), HasSubstr("is not closed"));
}

TEST(Bank, RefusesTemplatesThatLeak) {
  EXPECT_THAT(problems(with(kGood, "What is it about {config} that holds the average down?",
                            "Have you tried larger tiles for {config}?")),
              HasSubstr("suggestion"));
  EXPECT_THAT(problems(with(kGood, "average down?", "average down.")), HasSubstr("no question mark"));
}

TEST(Bank, AnUnreachableTriggerMustSayWhatIsMissing) {
  const std::string unreachable = with(kGood, "ratio_min <", "claims_cause AND cause_depth > 1 AND ratio_min <");
  EXPECT_THAT(problems(unreachable), HasSubstr("name the missing ones in \"needs\""));
  EXPECT_EQ(problems(unreachable + "needs = \"claims_cause, cause_depth\"\n"), "");
}

TEST(Bank, TwoEntriesMustNotSayTheSame) {
  const std::string other = with(with(kGood, "gt-a", "gt-b"), "What is it about", "So what is it about");
  EXPECT_THAT(problems(std::string(kGood) + other), HasSubstr("says much the same as \"gt-a\""));
}

TEST(Bank, LoadingABadBankThrowsTheFirstProblem) {
  const base::TempFolder folder;
  base::write_file_atomically(folder.path() / "gap_triage.toml", with(kGood, "ratio_min <", "ratio_mn <"));
  EXPECT_THROW(load_bank(folder.path()), Error);
  EXPECT_THROW(load_bank(folder.path() / "nowhere"), Error);
}

/// The bank of one question, with which messages are filled.
Bank bank_of(const std::string& toml) {
  const base::TempFolder folder;
  base::write_file_atomically(folder.path() / "gap_triage.toml", toml);
  return load_bank(folder.path());
}

TEST(Message, HoldsFactsWithTheirOriginThenTheQuestionThenNothing) {
  const Bank bank = bank_of(kGood);
  signals::Evidence evidence;
  evidence.facts.push_back({"rope-prefill: 0.41x of the fastest", "evaluation 12"});
  evidence.slots["config"] = "rope-prefill";
  evidence.focus = "rope-prefill";
  std::string why;
  const auto message = fill(bank.questions[0], {}, evidence, why);
  ASSERT_TRUE(message) << why;
  EXPECT_EQ(message->text(),
            signals::fact_line(evidence.facts[0]) + "\nWhat is it about rope-prefill that holds the average down?");
  EXPECT_EQ(message->focus, "rope-prefill");
  EXPECT_EQ(lint_message(*message, {"rope-prefill"}), "");
}

TEST(Message, IsNotMadeWhereASlotHasNoEvidence) {
  const Bank bank = bank_of(kGood);
  std::string why;
  EXPECT_FALSE(fill(bank.questions[0], {}, {}, why));
  EXPECT_EQ(why, "no evidence fills {config}");
}

TEST(Message, IsRefusedWhenWhatFilledASlotLeaks) {
  const Bank bank = bank_of(kGood);
  signals::Evidence evidence;
  evidence.facts.push_back({"Try larger tiles", "evaluation 12"});
  evidence.slots["config"] = "row-3";
  std::string why;
  const auto message = fill(bank.questions[0], {}, evidence, why);
  ASSERT_TRUE(message);
  EXPECT_NE(lint_message(*message, {}), "");
}

TEST(Message, ShowsSharesAsPercentagesAndCountsWhole) {
  EXPECT_EQ(slot_text({0.416, "", ""}, "outside_share"), "42 %");
  EXPECT_EQ(slot_text({0.0163, "", ""}, "noise_rel"), "1.6 %");
  EXPECT_EQ(slot_text({7.0, "", ""}, "n_evals"), "7");
  EXPECT_EQ(slot_text({0.4837, "", ""}, "geomean"), "0.484");
}

}  // namespace
}  // namespace ks::steering
