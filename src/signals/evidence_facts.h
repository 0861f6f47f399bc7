// The facts behind a signal, in words: which rows are slowest, which fell back, what the agent said. Only what is on
// record; a rule picks the rows (the lowest ratio, the widest pair), never insight.
#pragma once

#include <functional>
#include <string_view>

#include "signals/axis_signals.h"
#include "signals/evidence.h"
#include "signals/history_signals.h"
#include "signals/signal_set.h"
#include "signals/trace_signals.h"

namespace ks::signals {

/// What evidence is drawn from.
struct EvidenceSources {
  const History& history;
  const TraceFollower& trace;
  const SignalSet& signals;
  std::optional<double> goal;
  const OperatorGrids* grids = nullptr;
};

/// Facts for one signal; for a known signal that has no rows behind it, its own value in words.
Evidence evidence_for(std::string_view signal, const EvidenceSources& sources);

/// "rope-prefill: 0.41x of the fastest (0.39 to 0.43)"
std::string ratio_fact(const core::ScenarioResult& row);

}  // namespace ks::signals
