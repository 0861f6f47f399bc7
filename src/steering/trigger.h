// Triggers: when a question of the bank is called for, as an expression over signals:
//
//   bound_known AND frac_of_bound < 0.7 OR effect_rel < 2 * noise_rel AND NOT clock_known
//
// OR binds weaker than AND, AND weaker than NOT; sides of a comparison are sums and products of numbers and signals; a
// truth stands for itself; a word is compared with == or != and quoted with ''. A trigger is decided in three-valued
// logic: a signal that is not known makes its comparison unknown, and an unknown trigger does not fire. Dividing by a
// signal that is zero gives unknown too. docs/formats/bank.md has the grammar.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "signals/signal_set.h"

namespace ks::steering {

enum class Truth { kFalse, kUnknown, kTrue };

/// "false", "unknown", "true".
const char* truth_name(Truth truth);

/// Where a text stands in a file, to begin error messages with.
struct Position {
  std::string file = "trigger";
  int line = 1;
  int column = 1;  ///< of the text's first character
};

struct TriggerNode;

/// A parsed and checked trigger.
class Trigger {
 public:
  /// Throws ks::Error "file:line:column: …" for a malformed text, an unknown signal (with the nearest known one), sides
  /// that cannot be compared, and division by the number zero.
  explicit Trigger(const std::string& text, const Position& position = {});
  ~Trigger();
  Trigger(Trigger&&) noexcept;
  Trigger& operator=(Trigger&&) noexcept;

  const std::string& text() const { return text_; }
  /// The signals it reads, in order of their first use.
  const std::vector<std::string>& signals() const { return signals_; }

  Truth evaluate(const signals::SignalSet& signals) const;

  /// How far past its thresholds a trigger that fires is, in units of the threshold, 0 to 10; a truth or an equality
  /// counts 1. The weakest part of an AND counts, the strongest of an OR. 0 where it does not fire.
  double severity(const signals::SignalSet& signals) const;

  /// The parts that decide, with their values: "frac_of_bound (0.41) < 0.7: true".
  std::vector<std::string> explain(const signals::SignalSet& signals) const;

  /// No values of its signals can make it true ("n_evals > 3 AND n_evals < 2").
  bool never_fires() const;
  /// Every value of its signals makes it true ("n_evals >= 0").
  bool always_fires() const;
  /// It can be true while only the signals that `is_available` accepts are known.
  bool can_fire_with(const std::function<bool(std::string_view)>& is_available) const;

 private:
  std::string text_;
  std::vector<std::string> signals_;
  std::unique_ptr<TriggerNode> root_;
};

}  // namespace ks::steering
