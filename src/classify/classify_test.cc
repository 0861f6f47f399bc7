#include "classify/classify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

namespace ks::classify {
namespace {

struct Labelled {
  Act act;
  const char* text;
};

// Messages of our own, as people type them.
const Labelled kMessages[] = {
    {Act::kDirective, "Run the whole grid again with both baselines."},
    {Act::kDirective, "please commit what you have before going on"},
    {Act::kDirective, "Let's look at the decode rows first."},
    {Act::kDirective, "Don't touch the benchmark."},
    {Act::kDirective, "You should measure with the profiler off."},
    {Act::kDirective, "Revert the last two changes, then rerun."},
    {Act::kDirective, "could you try a different block size?"},
    {Act::kDirective, "Why don't we use the other layout?"},
    {Act::kDirective, "What about splitting the keys?"},
    {Act::kDirective, "make sure all 182 rows are checked"},
    {Act::kDirective, "write the results to a file and stop"},
    {Act::kDirective, "continue"},
    {Act::kQuestion, "Which rows are slow, and why?"},
    {Act::kQuestion, "how do you know that this is a limit"},
    {Act::kQuestion, "What did the last five attempts teach?"},
    {Act::kQuestion, "Can you tell me how you measured the 2.1 TB/s?"},
    {Act::kQuestion, "I wonder where those 5 us go."},
    {Act::kQuestion, "is the reference the strongest one here"},
    {Act::kQuestion, "Does the profile cover the phase you are talking about?"},
    {Act::kQuestion, "and what happens outside the kernel?"},
    {Act::kQuestion, "Where is the spread behind this number?"},
    {Act::kQuestion, "What makes you conclude that the goal is reached?"},
    {Act::kApproval, "Good."},
    {Act::kApproval, "ok, go on"},
    {Act::kApproval, "yes, that looks right"},
    {Act::kApproval, "Great work!"},
    {Act::kApproval, "agreed"},
    {Act::kApproval, "Good question."},
    {Act::kCorrection, "No, that is the wrong file."},
    {Act::kCorrection, "That's not what I asked."},
    {Act::kCorrection, "Good, but this is still slower than before."},
    {Act::kCorrection, "Actually the grid has 40 rows."},
    {Act::kCorrection, "you misread the table"},
    {Act::kCorrection, "You are comparing against the old build."},
    {Act::kGoal, "The goal is parity with FA3 on every row."},
    {Act::kGoal, "at least 1.0x geomean over the whole grid"},
    {Act::kGoal, "I want this kernel to be faster than cudnn everywhere."},
    {Act::kGoal, "goal: geomean above 1.1"},
};

TEST(Acts, AreThoseAPersonWouldName) {
  int right = 0;
  for (const auto& [act, text] : kMessages) {
    const MessageLabels labels = classify_message(text);
    const bool is_right = !labels.acts.empty() && labels.main_act == act;
    right += is_right ? 1 : 0;
    if (!is_right)
      printf("  %s, taken for %s: %s\n", act_name(act), labels.acts.empty() ? "nothing" : act_name(labels.main_act),
             text);
  }
  printf("acts: %d of %zu messages as labelled by hand\n", right, std::size(kMessages));
  EXPECT_GE(right, static_cast<int>(std::size(kMessages) * 9 / 10));
}

TEST(Acts, AnOrderInTheFormOfAQuestionIsADirectiveThatIsMarked) {
  EXPECT_TRUE(classify_message("Could you unroll the loop?").has_disguised_order);
  EXPECT_TRUE(classify_message("shouldn't we use the other one?").has_disguised_order);
  EXPECT_FALSE(classify_message("Can you tell me what the profile covers?").has_disguised_order);
  EXPECT_FALSE(classify_message("Which rows are slow?").has_disguised_order);
}

TEST(Acts, OfSeveralSentencesAreKeptAndTheStrongestLeads) {
  const auto labels = classify_message("Good. Which rows are slow? Run them again.");
  EXPECT_EQ(labels.acts, (std::set<Act>{Act::kApproval, Act::kQuestion, Act::kDirective}));
  EXPECT_EQ(labels.main_act, Act::kDirective);
  EXPECT_EQ(labels.sentences.size(), 3u);
}

TEST(Acts, PastedOutputAndCodeAreNotRead) {
  const auto labels =
      classify_message("Which of these is yours?\n```\nadd r1, r2\nerror: wrong?\n```\n> run it again\n");
  EXPECT_EQ(labels.acts, (std::set<Act>{Act::kQuestion}));
  EXPECT_TRUE(classify_message("").acts.empty());
  EXPECT_TRUE(classify_message("`run.sh`").sentences.size() <= 1);
  EXPECT_TRUE(classify_message(std::string("\x01\x02\x00 ", 4)).acts.empty());
}

struct QuestionLabel {
  const char* category;
  const char* text;
};

// Questions of our own, each with the category that a person would name first.
const QuestionLabel kQuestions[] = {
    {"measurement_check", "How noisy is this timer?"},
    {"measurement_check", "Was the measured binary built from the current source?"},
    {"measurement_check", "How many samples stand behind that median?"},
    {"benchmark_validity", "Does the grid cover the shapes that users run?"},
    {"benchmark_validity", "Is the reference in its best settings, is the comparison fair?"},
    {"benchmark_validity", "How was the tolerance chosen?"},
    {"agent_process", "Why did you stop, is the goal reached?"},
    {"agent_process", "What did the last five attempts teach you?"},
    {"agent_process", "What have you tried so far?"},
    {"bound_differencing", "How far from the roofline is it?"},
    {"bound_differencing", "Where does the time go between the bound and the result?"},
    {"bound_differencing", "What is the breakdown of the gap?"},
    {"gap_triage", "Which configurations are the slowest?"},
    {"gap_triage", "What do the rows below parity have in common?"},
    {"gap_triage", "Is it only decode that loses?"},
    {"hypothesis_check", "What would your explanation predict for another row?"},
    {"hypothesis_check", "What is the evidence that this is the cause?"},
    {"hypothesis_check", "Why is it slower, by which mechanism?"},
    {"challenge_a_limit", "Who says that this is a hard limit?"},
    {"challenge_a_limit", "If it is a genuine ceiling, how does the reference reach it?"},
    {"challenge_a_limit", "Which assumptions does that limit rest on?"},
    {"strategy_options", "Which other options are there?"},
    {"strategy_options", "What else could we try, and what would it be worth?"},
    {"strategy_options", "How do others solve this?"},
};

TEST(Categories, OfPlainQuestionsAreAmongTheBestTwo) {
  int best = 0, among_two = 0;
  for (const auto& [category, text] : kQuestions) {
    const auto scores = classify_question(text);
    const auto at = std::find_if(scores.begin(), scores.end(), [&](const auto& s) { return s.category == category; });
    best += at == scores.begin() && at != scores.end() ? 1 : 0;
    among_two += at != scores.end() && at - scores.begin() < 2 ? 1 : 0;
    if (at == scores.end() || at - scores.begin() >= 2)
      printf("  %s, taken for %s: %s\n", category, scores.empty() ? "nothing" : scores[0].category.c_str(), text);
  }
  printf("categories: %d of %zu best, %d among the best two\n", best, std::size(kQuestions), among_two);
  EXPECT_GE(among_two, static_cast<int>(std::size(kQuestions) * 8 / 10));
}

TEST(Categories, MayBeSeveralOrNone) {
  EXPECT_GE(classify_question("Which configurations are slowest, and how far from the roofline are they?").size(), 2u);
  EXPECT_TRUE(classify_question("Tea?").empty());
}

}  // namespace
}  // namespace ks::classify
