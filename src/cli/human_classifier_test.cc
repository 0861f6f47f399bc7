// How well the local classifier labels what people really wrote: confusion counts on the human messages of the
// transcripts below $KS_TRACES, against labels made by hand in two passes (tests/classify/human_labels.tsv, which names
// messages by hash alone). Where KS_TRACES is not set the test is skipped, and counted as such.
#include "cli/human_classifier.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "base/file.h"
#include "base/hash.h"
#include "trace/import.h"

namespace ks::cli {
namespace {

namespace fs = base::fs;
using Labels = std::set<std::string>;

/// What was labelled by hand: acts and categories, in the first pass and in the second.
struct HandLabels {
  Labels acts[2], categories[2];
};

Labels split_labels(const std::string& text) {
  Labels labels;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');)
    if (word != "-") labels.insert(word);
  return labels;
}

std::map<std::string, HandLabels> read_hand_labels() {
  std::map<std::string, HandLabels> all;
  for (const auto& line : base::read_lines(base::project_root() / "tests/classify/human_labels.tsv")) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream cells(line);
    std::string cell[5];
    for (auto& one : cell) std::getline(cells, one, '\t');
    all[cell[0]] = {{split_labels(cell[1]), split_labels(cell[2])}, {split_labels(cell[3]), split_labels(cell[4])}};
  }
  return all;
}

/// Counts of one label: hand says yes or no, the classifier says yes or no.
struct Confusion {
  int both = 0, hand_only = 0, classifier_only = 0, neither = 0;
  void add(bool hand, bool classifier) {
    ++(hand ? (classifier ? both : hand_only) : (classifier ? classifier_only : neither));
  }
  double kappa() const {
    const double n = both + hand_only + classifier_only + neither;
    const double agreed = (both + neither) / n, left = (both + hand_only) / n, right = (both + classifier_only) / n;
    const double chance = left * right + (1 - left) * (1 - right);
    return chance >= 1 ? 1 : (agreed - chance) / (1 - chance);
  }
};

std::map<std::string, std::string> human_messages(const fs::path& folder) {
  std::map<std::string, std::string> messages;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    try {
      trace::read_transcript(entry.path(), [&](trace::Event&& event) {
        if (event.kind != "message" || base::value_or<std::string>(event.body, "role", "") != "human") return;
        const auto text = base::value_or<std::string>(event.body, "text", "");
        messages[base::sha256_hex(text).substr(0, 16)] = text;
      });
    } catch (const Error&) {
      // No transcript: a note that lies beside them, say.
    }
  }
  return messages;
}

TEST(HumanClassifier, IsMeasuredOnWhatPeopleReallyWrote) {
  const char* folder = std::getenv("KS_TRACES");
  if (folder == nullptr) GTEST_SKIP() << "set KS_TRACES to the folder of the real transcripts";
  const auto messages = human_messages(folder);
  const auto classify = human_classifier();
  std::map<std::string, Confusion> acts, passes, categories;
  int known = 0, exact = 0;
  for (const auto& [hash, hand] : read_hand_labels()) {
    const auto message = messages.find(hash);
    if (message == messages.end()) continue;
    ++known;
    const auto labels = classify(message->second);
    const Labels said(labels.classes.begin(), labels.classes.end());
    exact += said == hand.acts[0];
    for (const std::string act : {"directive", "question", "approval", "correction", "goal"}) {
      acts[act].add(hand.acts[0].contains(act), said.contains(act));
      passes[act].add(hand.acts[0].contains(act), hand.acts[1].contains(act));
    }
    const Labels given(labels.categories.begin(), labels.categories.end());
    for (const std::string category : {"measurement_check", "benchmark_validity", "agent_process", "bound_differencing",
                                       "gap_triage", "hypothesis_check", "challenge_a_limit", "strategy_options"})
      categories[category].add(hand.categories[0].contains(category), given.contains(category));
  }
  ASSERT_GE(known, 60) << "the transcripts are not those that were labelled";
  std::printf("figure: %d messages of people; all acts right in %d\n", known, exact);
  for (const auto& [act, counts] : acts)
    std::printf(
        "figure: %-10s both %2d, by hand only %2d, classifier only %2d, neither %2d; the two passes agree with kappa "
        "%.2f\n",
        act.c_str(), counts.both, counts.hand_only, counts.classifier_only, counts.neither, passes[act].kappa());
  for (const auto& [category, counts] : categories)
    std::printf("figure: %-18s both %2d, by hand only %2d, classifier only %2d\n", category.c_str(), counts.both,
                counts.hand_only, counts.classifier_only);
  // Directives and questions are what a run's analysis counts on.
  for (const char* act : {"directive", "question"}) EXPECT_GT(acts[act].kappa(), 0.6) << act;
}

TEST(HumanClassifier, LabelsAQuestionWithActAndCategory) {
  const auto labels = human_classifier()("Which of the rows is slowest, and how large is its share of the gap?");
  EXPECT_EQ(labels.classes, std::vector<std::string>{"question"});
  ASSERT_FALSE(labels.categories.empty());
  EXPECT_EQ(labels.categories.front(), "gap_triage");
}

}  // namespace
}  // namespace ks::cli
