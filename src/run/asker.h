// The questioner of a run, fed from its trace and records: each call reads what was appended since the last one, so a
// question is chosen from what is on the disk and nothing else, before a crash and after it alike.
#pragma once

#include <memory>
#include <string>

#include "run/workbench.h"
#include "signals/signal_tracker.h"
#include "steering/questioner.h"
#include "trace/trace_reader.h"

namespace ks::run {

/// Follows a run's (or a folder of records') trace.
class SteeringFeed {
 public:
  explicit SteeringFeed(const base::fs::path& folder, uint64_t seed);
  /// Reads what is new, and says how things stand.
  steering::SteeringState state(bool is_stop_requested);
  /// Reads one event more, and says which; nothing where there is none yet.
  std::optional<trace::Event> step();
  /// How things stand with what was read so far.
  steering::SteeringState current(bool is_stop_requested) const;
  const signals::SignalTracker& tracker() const { return tracker_; }

 private:
  void take(const trace::Event& event);
  void take_names(const core::Evaluation& evaluation);
  base::fs::path folder_;
  uint64_t seed_;
  trace::TraceReader reader_;
  signals::SignalTracker tracker_;
  std::vector<std::string> names_;
  std::vector<steering::Asked> asked_;
  int n_evaluations_ = 0, open_tools_ = 0;
};

/// Throws ks::Error where the task's questioner is unknown or lacks what it needs, before anything is made for a run.
void check_questioner(const Task& task);

/// The task's questioner over a run's folder; throws ks::Error as check_questioner.
Questioner make_asker(const Task& task, const base::fs::path& folder);

/// A message of the bank as the run sends it.
Asked asked_from(const steering::Message& message, int evaluations);

/// Gives a folder of evaluation records a trace of its own (trace.jsonl beside them), or brings it up to date; the
/// trace names every record once, in order of their start. Nothing is done to a run's folder. Throws ks::Error where
/// `folder` holds neither.
void ensure_trace(const base::fs::path& folder);

}  // namespace ks::run
