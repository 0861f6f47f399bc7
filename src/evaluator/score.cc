#include "evaluator/score.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "stats/intervals.h"

namespace ks::evaluator {
namespace {

using core::Verdict;

/// Baseline time over candidate time, from samples taken in turns.
core::Ratio ratio_of(const core::Side& candidate, const core::Side& baseline) {
  std::vector<double> logs;
  const size_t n = std::min(candidate.samples_us.size(), baseline.samples_us.size());
  for (size_t i = 0; i < n; ++i) logs.push_back(std::log(baseline.samples_us[i] / candidate.samples_us[i]));
  const auto interval = stats::paired_interval(logs);
  return {std::exp(interval.value), std::exp(interval.low), std::exp(interval.high)};
}

bool is_timed(const core::Side& side) {
  return side.verdict == Verdict::kCorrect && !side.samples_us.empty();
}

/// Figures against one baseline name (or "fastest").
void summarise_against(const std::vector<const core::ScenarioResult*>& results, const std::string& name,
                       core::Summary& summary) {
  std::vector<stats::Interval> ratios;
  int parity = 0;
  double worst = INFINITY;
  bool undefined = false;
  for (const auto* result : results) {
    const bool baseline_right =
        name == "fastest" ? std::any_of(result->baselines.begin(), result->baselines.end(),
                                        [](const auto& entry) { return entry.second.verdict == Verdict::kCorrect; })
                          : result->baselines.contains(name) && result->baselines.at(name).verdict == Verdict::kCorrect;
    if (!baseline_right) continue;
    const auto found = result->ratio.find(name);
    if (result->candidate.verdict != Verdict::kCorrect || found == result->ratio.end()) {
      undefined = true;
      continue;
    }
    ratios.push_back({found->second.value, found->second.low, found->second.high});
    parity += found->second.value >= 1.0;
    worst = std::min(worst, found->second.value);
  }
  summary.geomean[name] = summary.geomean_low[name] = summary.geomean_high[name] = std::nullopt;
  summary.worst[name] = std::nullopt;
  summary.parity[name] = std::nullopt;
  if (ratios.empty()) return;
  summary.parity[name] = parity;
  summary.worst[name] = worst;
  if (undefined) return;
  const auto geomean = stats::geometric_mean(ratios);
  summary.geomean[name] = geomean.value;
  summary.geomean_low[name] = geomean.low;
  summary.geomean_high[name] = geomean.high;
}

}  // namespace

void score_scenario(core::ScenarioResult& result, const std::map<std::string, core::Ratio>& carried) {
  result.ratio.clear();
  if (!is_timed(result.candidate)) return;
  const core::Side* fastest = nullptr;
  for (const auto& [name, side] : result.baselines) {
    if (!is_timed(side)) continue;
    const auto known = carried.find(name);
    result.ratio[name] = known != carried.end() ? known->second : ratio_of(result.candidate, side);
    if (fastest == nullptr || *side.time_us < *fastest->time_us) {
      fastest = &side;
      result.ratio["fastest"] = result.ratio[name];
    }
  }
}

core::Side best_member(const std::vector<std::string>& members, const std::map<std::string, core::Side>& sides) {
  const auto rank = [](const core::Side& side) {
    if (is_timed(side)) return 0;
    if (side.verdict == Verdict::kCorrect) return 1;
    return side.verdict == Verdict::kUnsupported || side.verdict == Verdict::kNotRun ? 3 : 2;
  };
  const core::Side* best = nullptr;
  const std::string* name = nullptr;
  for (const auto& member : members) {
    const auto found = sides.find(member);
    if (found == sides.end()) continue;
    const core::Side& side = found->second;
    const bool better = best == nullptr || rank(side) < rank(*best) ||
                        (rank(side) == 0 && rank(*best) == 0 && *side.time_us < *best->time_us);
    if (better) best = &side, name = &member;
  }
  if (best == nullptr) return {};
  core::Side result = *best;
  result.reason = result.reason.empty() ? *name : *name + ": " + result.reason;
  return result;
}

core::Summary summarise(const std::vector<const core::ScenarioResult*>& results) {
  core::Summary summary;
  std::set<std::string> names = {"fastest"};
  for (const auto* result : results) {
    ++summary.total;
    summary.correct += result->candidate.verdict == Verdict::kCorrect;
    for (const auto& [name, side] : result->baselines) names.insert(name);
  }
  for (const auto& name : names) summarise_against(results, name, summary);
  return summary;
}

void score_evaluation(core::Evaluation& evaluation, const std::vector<double>& aa_logs, const CarriedRatios& carried) {
  std::vector<const core::ScenarioResult*> all;
  std::map<std::string, std::vector<const core::ScenarioResult*>> by_category;
  for (auto& result : evaluation.scenarios) {
    const auto known = carried.find(result.name);
    score_scenario(result, known != carried.end() ? known->second : std::map<std::string, core::Ratio>{});
    all.push_back(&result);
    by_category[result.category].push_back(&result);
  }
  evaluation.summary = summarise(all);
  evaluation.by_category.clear();
  for (const auto& [category, results] : by_category) evaluation.by_category[category] = summarise(results);
  if (aa_logs.empty()) return;
  evaluation.summary.aa_median = stats::median(aa_logs);
  evaluation.summary.aa_p95 = stats::quantile(aa_logs, 0.95);
}

}  // namespace ks::evaluator
