// What a person's message does (directive, question, approval, correction, goal), and which of the eight kinds of
// question its questions are. Rules with weights, no model: they explain themselves and give the same answer
// everywhere.
//
// Code blocks, quoted output and pasted logs are cut first; then the text is split into sentences, each sentence gets
// its acts, and the message has all of them. Its main act is the strongest in a fixed order. An order in the form of a
// question ("could you try …") counts as a directive and keeps the mark that its form was a question.
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ks::classify {

enum class Act { kCorrection, kDirective, kGoal, kQuestion, kApproval };  // strongest first
inline constexpr std::array<Act, 5> kActs = {Act::kCorrection, Act::kDirective, Act::kGoal, Act::kQuestion,
                                             Act::kApproval};

/// "correction", "directive", "goal", "question", "approval".
const char* act_name(Act act);

/// A sentence with what it does.
struct Sentence {
  std::string text;
  std::set<Act> acts;
  bool is_disguised_order = false;  ///< a directive in the form of a question
};

/// A category of questions with the weight of the evidence for it and the words that gave it.
struct CategoryScore {
  std::string category;
  double score = 0;
  std::vector<std::string> because;
};

struct MessageLabels {
  std::vector<Sentence> sentences;
  std::set<Act> acts;
  Act main_act = Act::kDirective;  ///< meaningful where acts is not empty
  bool has_disguised_order = false;
};

/// The acts of a message; none for an empty one.
MessageLabels classify_message(std::string_view text);

/// The categories whose score reaches kLeastScore, best first; none where nothing speaks for any.
std::vector<CategoryScore> classify_question(std::string_view text);

inline constexpr double kLeastScore = 1.0;

/// The text without code blocks, inline code, quotation lines, links and pasted logs.
std::string without_quoted(std::string_view text);

}  // namespace ks::classify
