// What a question may show of the facts behind a signal: lines in words, each with its origin; slots for the question's
// text; and the scenario that the facts are about.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ks::signals {

/// One line of evidence: a fact and where it can be looked up.
struct Fact {
  std::string text;    ///< "rope-prefill: 0.41x of the fastest (0.39 to 0.43)"
  std::string origin;  ///< "evaluation 12"
};

/// The facts behind one signal. Empty where there is nothing to show.
struct Evidence {
  std::vector<Fact> facts;
  /// Values for a question's slots, taken from the facts: "config", "config_a", "config_b", "metric", "delta", "bound",
  /// "n", "claim", "goal", "current", "gap", "axis", "feature", "command", "factor" … Only those that are known.
  std::map<std::string, std::string> slots;
  std::string focus;  ///< name of the scenario that the facts are about; empty: none, or all alike

  bool empty() const { return facts.empty(); }
  /// Appends the facts of another signal; slots and focus that are already there stay.
  void add(const Evidence& other);
};

/// "0.41x of the fastest (evaluation 12)"
std::string fact_line(const Fact& fact);

}  // namespace ks::signals
