// Which question is asked now, if any. A pure function of the bank and the state: gates on the moment first, then gates
// on each entry, then an order; the last tie is broken by a coin of the seed. It keeps the reason for every entry.
//
// Order of what remains: questions about the validity of the result; entries that meet a claim of the agent; the rest.
// Within these by severity (how far past its thresholds the trigger is), then by the category asked least recently.
// While the work improves, a question about its course must be far past its threshold; where the goal is met, a plateau
// calls for nothing. On a plateau, entries that react to it come in three steps: what was learned; then measurements
// and bounds; then options and limits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "steering/bank.h"

namespace ks::steering {

/// A question that was asked, as the log keeps it.
struct Asked {
  std::string id, category;
  int evaluation = 0;            ///< evaluations judged when it was asked
  std::string evidence_hash;     ///< of the facts that it showed
  std::optional<bool> answered;  ///< whether the expected evidence appeared; unknown while there is still time
};

/// What selection needs to know of a run. It is kept up to date event by event; nothing is read anew.
struct SteeringState {
  signals::SignalSet signals;
  /// What can be shown for some signals now.
  EvidenceSource evidence;
  std::vector<std::string> names;  ///< of rows, categories, axes and files: no leak in a message
  std::vector<Asked> asked;        ///< in order
  int n_evaluations = 0;
  bool is_tool_running = false;
  bool is_measurement_under_way = false;
  int steps_since_edit = 1000;  ///< steps of the agent
  bool is_stop_requested = false;
  uint64_t seed = 0;
};

/// The numbers of the policy.
struct SelectionPolicy {
  int evaluations_between = 2;  ///< least distance of two questions, unless a stop is requested
  int rest_evaluations = 10;    ///< of an entry after use
  int unanswered_to_close = 2;  ///< unanswered questions that close their category …
  int closed_evaluations = 10;  ///< … for this long
  int steps_after_edit = 2;     ///< no question while the measurement of so fresh an edit is under way
  double severity_while_improving =
      2;  ///< of questions about the course while the last evaluation improved the best, or the goal is met
  int plateau_evaluations = 5;  ///< without improvement: a plateau
};

enum class Tier { kInvalidity, kClaim, kCourse };
const char* tier_name(Tier tier);

/// An entry as selection saw it.
struct Considered {
  const Question* question = nullptr;
  Truth fires = Truth::kUnknown;
  Tier tier = Tier::kCourse;
  double severity = 0;
  std::string gate;                  ///< the gate that it failed; empty: it was eligible
  std::vector<std::string> because;  ///< the trigger's parts with their values
};

struct Selection {
  std::optional<Message> message;
  std::string moment_gate;             ///< why nothing may be asked now; empty: it may
  std::vector<Considered> considered;  ///< entries that fire, best first, then those that a gate held back
  size_t n_not_firing = 0;
  std::string explain() const;  ///< lines for `ask --why`
};

/// Chooses. With `ignore_moment` the gates on the moment are left out (a person asks for the bank's opinion).
Selection select_question(const Bank& bank, const SteeringState& state, const SelectionPolicy& policy = {},
                          bool ignore_moment = false);

/// The best `count` messages, for a person to choose from.
std::vector<Message> best_messages(const Bank& bank, const SteeringState& state, size_t count,
                                   const SelectionPolicy& policy = {});

}  // namespace ks::steering
