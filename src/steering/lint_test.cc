#include "steering/lint.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace ks::steering {
namespace {

bool leaks(std::string_view text, const std::vector<std::string>& names = {}) {
  return !lint_leaks(text, names).empty();
}

std::vector<std::string> sentences(const std::string& name) {
  std::vector<std::string> lines;
  for (const auto& line : base::read_lines(base::fs::path(KS_SOURCE_DIR) / "tests" / "lint" / name))
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  return lines;
}

/// What the lint makes of two files of sentences.
struct Rates {
  size_t n_leaking = 0, n_clean = 0, n_caught = 0, n_false = 0;
  double recall() const { return static_cast<double>(n_caught) / static_cast<double>(n_leaking); }
  double precision() const { return static_cast<double>(n_caught) / static_cast<double>(n_caught + n_false); }
};

Rates measure(const std::string& half) {
  Rates rates;
  for (const auto& text : sentences(half + "_leaking.txt")) {
    ++rates.n_leaking;
    rates.n_caught += leaks(text) ? 1 : 0;
  }
  for (const auto& text : sentences(half + "_clean.txt")) {
    ++rates.n_clean;
    rates.n_false += leaks(text) ? 1 : 0;
  }
  printf(
      "lint, %s half: %zu of %zu leaking sentences caught, %zu of %zu clean ones refused; recall %.3f, precision "
      "%.3f\n",
      half.c_str(), rates.n_caught, rates.n_leaking, rates.n_false, rates.n_clean, rates.recall(), rates.precision());
  return rates;
}

TEST(Lint, RefusesConstructsTechniquesNumbersSuggestionsOrdersAnswersAndPraise) {
  EXPECT_TRUE(leaks("What does the occupancy look like?"));
  EXPECT_TRUE(leaks("What would unrolling bring?"));
  EXPECT_TRUE(leaks("Does it get better with 4 stages?"));
  EXPECT_TRUE(leaks("Have you tried another order?"));
  EXPECT_TRUE(leaks("Measure it again."));
  EXPECT_TRUE(leaks("The reason is the tail."));
  EXPECT_TRUE(leaks("Good work."));
}

TEST(Lint, DoesNotJudgeTheAgentsOwnWordsNamesOrSlots) {
  EXPECT_FALSE(leaks("You wrote: \"shared memory is the limit\". Which measurement shows that?"));
  EXPECT_FALSE(leaks("What is special about split_cache_b8?", {"split_cache_b8"}));
  EXPECT_TRUE(leaks("What is special about split_cache_b8?"));
  EXPECT_FALSE(leaks("What is special about {config}?"));
}

TEST(Lint, AQuestionMustBeShortPlainAndAQuestion) {
  const auto kinds = [](const std::string& text) {
    std::string all;
    for (const auto& finding : lint_question(text)) all += finding.what + " ";
    return all;
  };
  EXPECT_EQ(kinds("What is known about the slowest row?"), "");
  EXPECT_EQ(kinds("This is what is known about the slowest row."), "shape ");
  EXPECT_EQ(kinds("What is it? And what is that? And who is the one?"), "shape ");
  EXPECT_EQ(kinds("What is the " + std::string(200, 'x') + "?"), "shape ");
  EXPECT_EQ(kinds("Was ist denn hier langsam und warum?"), "language ");
  EXPECT_EQ(kinds("What is the \u00e9cart of the row?"), "language ");
}

TEST(Lint, FindsTextsThatSayTheSame) {
  EXPECT_GT(content_overlap("Which rows hold the average down?", "Which rows hold down the average?"), kMostOverlap);
  EXPECT_LT(content_overlap("Which rows hold the average down?", "How was the tolerance chosen?"), kMostOverlap);
}

TEST(Lint, SaysOfTheDevelopingHalfWhatItShould) {
  const Rates rates = measure("develop");
  EXPECT_GE(rates.n_leaking, 100u);
  EXPECT_GE(rates.n_clean, 100u);
  EXPECT_GE(rates.recall(), 0.97);
  EXPECT_GE(rates.precision(), 0.95);
}

TEST(Lint, CatchesLeaksInSentencesItWasNotMadeOn) {
  const Rates rates = measure("measure");
  EXPECT_GE(rates.n_leaking, 100u);
  EXPECT_GE(rates.n_clean, 100u);
  EXPECT_GE(rates.recall(), 0.97);
  EXPECT_GE(rates.precision(), 0.95);
}

TEST(Lint, SurvivesAnyText) {
  EXPECT_TRUE(lint_leaks("").empty());
  EXPECT_FALSE(lint_question(std::string(1 << 20, '{')).empty());
  EXPECT_FALSE(lint_question(std::string("a\0b\x01", 4)).empty());
}

}  // namespace
}  // namespace ks::steering
