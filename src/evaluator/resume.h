// Going on from an earlier record: what it has is kept, what it lacks (scenarios, baselines) is judged, and the two
// become one record where they may: same operator, grid, device, driver, way of timing and candidate.
#pragma once

#include "core/record.h"
#include "evaluator/score.h"

namespace ks::evaluator {

/// Throws ks::Error that names what differs where `now` may not go on from `old`. `now` knows its device already.
void check_resumable(const core::Evaluation& old, const core::Evaluation& now);

/// What the record says of a scenario; null where it was not judged there.
const core::ScenarioResult* known_result(const core::Evaluation& old, const std::string& scenario);

/// True if a baseline was judged in this scenario.
bool knows_baseline(const core::ScenarioResult& old, const std::string& baseline);

/// Takes over the baselines that `fresh` lacks, with their ratios: those hold against the candidate's samples of then.
void merge_baselines(const core::ScenarioResult& old, core::ScenarioResult& fresh, CarriedRatios& carried);

/// Takes over a scenario as it is.
void carry_whole(const core::ScenarioResult& old, core::Evaluation& now, CarriedRatios& carried);

/// Scenarios of `old` that this evaluation did not look at (another filter) are kept, and its provenance is named.
void keep_the_rest(const core::Evaluation& old, core::Evaluation& now, CarriedRatios& carried);

}  // namespace ks::evaluator
