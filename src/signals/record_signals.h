// Signals that one evaluation record gives by itself: ratios, verdicts, errors, bounds, samples, and what the
// evaluator's protocol guarantees. Pure functions; docs/formats/signals.md says how each is computed.
#pragma once

#include <optional>
#include <vector>

#include "core/record.h"
#include "signals/signal_set.h"

namespace ks::signals {

/// "evaluation 12", or "evaluation 12 (3 of 12 scenarios)" where a part of the grid was run.
std::string origin_of(int number, const core::Evaluation& record, int declared);

/// The ratio against the fastest right baseline; nothing where there is none.
const core::Ratio* ratio_of(const core::ScenarioResult& row);

/// The fastest baseline that was right and timed on this row; null where there is none.
const core::Side* reference_of(const core::ScenarioResult& row);

/// The name of reference_of(row); "" where there is none.
std::string reference_name(const core::ScenarioResult& row);

/// True where some baseline was right on this row.
bool reference_right(const core::ScenarioResult& row);

/// Rows that have a ratio, lowest first.
std::vector<const core::ScenarioResult*> by_ratio(const core::Evaluation& record);

/// True where a row of the record was timed.
bool is_timed(const core::Evaluation& record);

/// Geometric mean of the ratios over rows that have one; nothing where none has.
std::optional<double> geomean_of(const core::Evaluation& record);

/// Share of sum(max(0, log goal - log ratio)) in the three slowest rows; nothing where no row is below the goal.
std::optional<double> loggap_top3_share(const core::Evaluation& record, double goal);

/// Relative noise of a ratio, from the A/A comparison: exp(p95 of |log ratio|) - 1; nothing where none was made.
std::optional<double> noise_of(const core::Evaluation& record);

/// max |mean / median - 1| of a row's samples, from 4 samples on.
std::optional<double> mean_median_gap(const core::Evaluation& record);
/// max first sample / median of the later ones, from 4 samples on.
std::optional<double> first_sample_ratio(const core::Evaluation& record);
/// Largest distance between two heaps of a row's samples over the spread inside them, from 8 samples on.
std::optional<double> bimodality_gap(const core::Evaluation& record);

/// The row whose host time exceeds its device time by the largest share, and that share.
struct OutsideShare {
  const core::ScenarioResult* row = nullptr;
  double share = 0;
};
std::optional<OutsideShare> outside_share(const core::Evaluation& record);

/// Ours over the reference's mean row error, and allowed over the reference's worst error: the extreme rows.
struct ErrorFigures {
  const core::ScenarioResult* worst_row = nullptr;  ///< where our error is largest against the reference's
  double err_ratio = 0;
  double tol_slack = 0;  ///< smallest over the rows
};
std::optional<ErrorFigures> error_figures(const core::Evaluation& record);

/// Sets every signal of this file that the record makes known. `goal`: target of the geomean, if there is one;
/// `declared`: rows of the grid.
void add_record_signals(const core::Evaluation& record, const std::string& origin, std::optional<double> goal,
                        int declared, SignalSet& signals);

}  // namespace ks::signals
