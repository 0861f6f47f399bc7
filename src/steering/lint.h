// The leak lint: refuses messages that carry an answer. It runs on every template of the bank and again on every
// rendered message, because a fact or a name that fills a slot may leak too.
//
// What it looks for is the table in lint_rules.h: constructs of machines and programs, techniques, numbers to try,
// suggestions in any form, orders, answers and praise. Text in double quotes or backticks is the agent's own and is not
// judged; names of scenarios and axes are passed in and not judged either. What no lint can see: a pair of rows that
// was chosen by insight, and a presupposition in plain words. docs/formats/bank.md says how that is met.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "steering/lint_rules.h"

namespace ks::steering {

/// "construct", "technique", "number to try", "suggestion", "order", "answer", "praise".
const char* leak_name(Leak leak);

/// One thing that is wrong with a text.
struct LintFinding {
  std::string what;   ///< the kind of leak, or "shape", "language"
  std::string words;  ///< the words that show it
  std::string text() const;
};

inline constexpr size_t kLongestQuestion = 200;  ///< characters

/// Leaks in a text of any form. `names` are judged as one word each that leaks nothing.
std::vector<LintFinding> lint_leaks(std::string_view text, const std::vector<std::string>& names = {});

/// A fact: leaks but for constructs and numbers, which a measured fact may name (a column of the grid, a verdict's
/// reason).
std::vector<LintFinding> lint_fact(std::string_view text, const std::vector<std::string>& names = {});

/// A question: leaks; a question mark; at most two questions and 200 characters; plain English.
std::vector<LintFinding> lint_question(std::string_view text, const std::vector<std::string>& names = {});

/// The words of a text that carry meaning, shortened to their stems, without slots.
std::set<std::string> content_words(std::string_view text);

/// Shared content words over all content words of the two texts.
double content_overlap(std::string_view left, std::string_view right);

inline constexpr double kMostOverlap = 0.45;  ///< two entries that share more say the same

}  // namespace ks::steering
