// Follows a run and knows its signals at any moment. Feed it every event of the trace in order, and every evaluation
// record beside the event that names it (before or after; the number links them). Each step costs a constant, or time
// in proportion to one record: nothing is computed anew from the whole trace.
//
//   SignalTracker tracker;
//   for (const auto& event : events) tracker.on_event(event);
//   tracker.on_evaluation(12, record);
//   const SignalSet signals = tracker.current();
//   const Evidence why = tracker.evidence("ratio_min");
//
// What is computed from records alone lies in record_signals.h and history_signals.h, from the trace in
// trace_signals.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "core/record.h"
#include "signals/evidence.h"
#include "signals/signal_set.h"
#include "trace/event.h"

namespace ks::signals {

/// What a tracker may know beside the trace.
struct TrackerOptions {
  std::string goal;  ///< goal expression; empty: taken from the trace's run_start
};

class SignalTracker {
 public:
  explicit SignalTracker(TrackerOptions options = {});
  ~SignalTracker();
  SignalTracker(SignalTracker&&) noexcept;
  SignalTracker& operator=(SignalTracker&&) noexcept;

  void on_event(const trace::Event& event);
  /// A number that was given before replaces what was known of it.
  void on_evaluation(int number, const core::Evaluation& evaluation);

  /// All signals that are known now.
  SignalSet current() const;

  /// What can be shown for a signal now; empty for a signal that is unknown.
  Evidence evidence(std::string_view signal) const;
  /// The same for several signals (a trigger's), in order, without repetitions.
  Evidence evidence(const std::vector<std::string>& signals) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A tracker that has seen a run folder (trace.jsonl and evaluations/NNNN.json), or a folder of evaluation records in
/// order of their names, or a transcript in any known format. Throws ks::Error where `path` is none of these.
SignalTracker read_run(const base::fs::path& path);

}  // namespace ks::signals
