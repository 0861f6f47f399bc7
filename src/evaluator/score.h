// From times to ratios, and from ratios to the summary: pure functions of what was measured.
#pragma once

#include "core/record.h"

namespace ks::evaluator {

/// Ratios that an earlier record measured, by scenario and baseline: their samples were taken in turns with other
/// samples of the candidate than this record's.
using CarriedRatios = std::map<std::string, std::map<std::string, core::Ratio>>;

/// Fills `ratio` of a scenario from the samples of its sides, or from `carried`; "fastest" is the right baseline of
/// least time.
void score_scenario(core::ScenarioResult& result, const std::map<std::string, core::Ratio>& carried = {});

/// What a group of baselines came to in a scenario: its fastest member that is right there, named in the reason. Where
/// none is right: the first that was wrong or failed, else the first that is unsupported.
core::Side best_member(const std::vector<std::string>& members, const std::map<std::string, core::Side>& sides);

/// Summary over scenarios. A geomean is undefined where the candidate is not correct while that baseline is right.
core::Summary summarise(const std::vector<const core::ScenarioResult*>& results);

/// Fills summary and by_category; `aa_logs` are |log ratio| of the candidate against itself.
void score_evaluation(core::Evaluation& evaluation, const std::vector<double>& aa_logs,
                      const CarriedRatios& carried = {});

}  // namespace ks::evaluator
