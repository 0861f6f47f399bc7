#include "signals/record_signals.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "stats/intervals.h"

namespace ks::signals {
namespace {

using core::ScenarioResult;
using core::Verdict;

constexpr size_t kFewSamples = 4, kManySamples = 8;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The largest of `figure` over rows with at least `least` samples of the candidate.
template <typename Figure>
std::optional<double> largest(const core::Evaluation& record, size_t least, const Figure& figure) {
  std::optional<double> result;
  for (const auto& row : record.scenarios) {
    if (row.candidate.samples_us.size() < least) continue;
    const double value = figure(row.candidate.samples_us);
    if (std::isfinite(value) && (!result || value > *result)) result = value;
  }
  return result;
}

/// The middle of a figure of the samples over the rows that have enough of them: what concerns a way of measuring shows
/// on most rows, and a single one may have been disturbed.
template <typename Figure>
std::optional<double> middle(const core::Evaluation& record, size_t least, const Figure& figure) {
  std::vector<double> values;
  for (const auto& row : record.scenarios) {
    if (row.candidate.samples_us.size() < least) continue;
    const double value = figure(row.candidate.samples_us);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values.empty() ? std::nullopt : std::optional(stats::median(values));
}

double spread_inside(std::span<const double> sorted) {
  const double mean = mean_of(sorted);
  double sum = 0;
  for (const double value : sorted) sum += (value - mean) * (value - mean);
  return sum;
}

/// Splits sorted log samples where the two parts are tightest, each of a quarter of them at least (a sample or two that
/// were disturbed are no heap); distance of their means over the spread inside.
double heap_distance(std::vector<double> samples) {
  for (double& value : samples) value = std::log(std::max(value, 1e-9));
  std::sort(samples.begin(), samples.end());
  const std::span<const double> all(samples);
  double least = INFINITY, distance = 0;
  const size_t heap = std::max<size_t>(2, (samples.size() + 3) / 4);
  for (size_t cut = heap; cut + heap <= samples.size(); ++cut) {
    const double inside = spread_inside(all.first(cut)) + spread_inside(all.subspan(cut));
    if (inside >= least) continue;
    least = inside;
    const double sd = std::sqrt(inside / static_cast<double>(samples.size()));
    distance = (mean_of(all.subspan(cut)) - mean_of(all.first(cut))) / std::max(sd, 1e-4);
  }
  return distance;
}

void add_ratio_signals(const core::Evaluation& record, const std::string& origin, std::optional<double> goal,
                       SignalSet& signals) {
  const auto rows = by_ratio(record);
  signals.set("n_configs_reported", static_cast<double>(rows.size()), origin);
  if (rows.empty()) return;
  const double low = ratio_of(*rows.front())->value, high = ratio_of(*rows.back())->value;
  signals.set_known("geomean", geomean_of(record), origin);
  signals.set("ratio_min", low, origin);
  signals.set("ratio_max", high, origin);
  signals.set("ratio_spread", high / low, origin);
  if (goal) signals.set_known("loggap_top3_share", loggap_top3_share(record, *goal), origin);
  if (const auto& row = *rows.front(); row.bound_us && row.candidate.time_us)
    signals.set("frac_of_bound", *row.bound_us / *row.candidate.time_us, origin);
}

void add_verdict_signals(const core::Evaluation& record, const std::string& origin, SignalSet& signals) {
  int judged = 0, correct = 0, unsupported = 0, referenced = 0, ours = 0;
  for (const auto& row : record.scenarios) {
    if (row.candidate.verdict == Verdict::kNotRun) continue;  // out of time says nothing about the candidate
    ++judged;
    const bool reference = reference_right(row);
    correct += row.candidate.verdict == Verdict::kCorrect;
    unsupported += reference && row.candidate.verdict == Verdict::kUnsupported;
    referenced += reference;
    ours += reference && row.candidate.verdict != Verdict::kUnsupported;
  }
  if (judged == 0) return;
  signals.set("n_correct_frac", correct / static_cast<double>(judged), origin);
  signals.set("n_unsupported", static_cast<double>(unsupported), origin);
  if (referenced > 0) signals.set("feature_parity", ours / static_cast<double>(referenced), origin);
}

void add_bound_signals(const core::Evaluation& record, const std::string& origin, SignalSet& signals) {
  bool bound = false, counted = !record.scenarios.empty(), placed = false;
  for (const auto& row : record.scenarios) {
    if (row.candidate.verdict == Verdict::kNotRun) continue;
    bound |= row.bound_us.has_value();
    counted &= row.flops.has_value() && row.bytes.has_value();
    placed |= row.bound_us.has_value() && reference_of(row) != nullptr;
  }
  signals.set("bound_known", bound, origin);
  signals.set("bound_source", std::string(bound ? "datasheet" : "none"), origin);
  signals.set("work_counted", counted, origin);
  signals.set("ref_frac_known", placed, origin);
}

/// What blocks taken in turns and verified one by one give by construction.
void add_protocol_signals(const core::Evaluation& record, const std::string& origin, SignalSet& signals) {
  const std::string protocol = origin + ", the evaluator's protocol";
  for (const char* name : {"interleaved", "timed_output_checked", "completion_checked", "input_dist_known",
                           "parity_of_terms", "stat_named", "isolated_only"})
    signals.set(name, true, protocol);
  for (const char* name : {"repeat_same_input", "timed_region_differs", "input_constant"})
    signals.set(name, false, protocol);
  std::optional<double> fewest;
  bool spread = true, several = false;
  for (const auto& row : record.scenarios) {
    int right = 0;
    for (const auto& [name, side] : row.baselines) right += side.verdict == Verdict::kCorrect;
    several |= right > 1;
    if (!row.candidate.time_us) continue;
    const auto count = static_cast<double>(row.candidate.samples_us.size());
    if (count > 0 && (!fewest || count < *fewest)) fewest = count;
    const auto* ratio = ratio_of(row);
    spread &= ratio == nullptr || ratio->high > ratio->low;
  }
  signals.set_known("n_repeats", fewest, origin);
  signals.set("spread_reported", spread, origin);
  signals.set("baseline_best_checked", several, origin);
  signals.set("call_freq_known", false, protocol);
}

void add_machine_signals(const core::Evaluation& record, const std::string& origin, SignalSet& signals) {
  bool clock = false;
  for (const auto& [key, value] : record.provenance.items())
    clock |= key.find("clock") != std::string::npos && !value.is_null() && !value.empty();
  signals.set("clock_known", clock, origin);
  if (const auto found = record.provenance.find("other_processes");
      found != record.provenance.end() && found->is_number())
    signals.set("other_load", found->get<double>(), origin);
  double cache = 0;
  if (const auto device = record.provenance.find("device"); device != record.provenance.end() && device->is_object())
    for (const char* key : {"l2_bytes", "l3_bytes"}) cache = std::max(cache, base::value_or<double>(*device, key, 0));
  std::optional<double> smallest;
  for (const auto& row : record.scenarios)
    if (row.bytes && cache > 0 && (!smallest || *row.bytes / cache < *smallest)) smallest = *row.bytes / cache;
  signals.set_known("working_set_ratio", smallest, origin);
  if (record.wall_s > 0) signals.set("eval_minutes", record.wall_s / 60, origin);
}

}  // namespace

std::string origin_of(int number, const core::Evaluation& record, int declared) {
  const auto rows = static_cast<int>(record.scenarios.size());
  if (rows == 0 || rows >= declared) return fmt::format("evaluation {}", number);
  return fmt::format("evaluation {} ({} of {} scenarios)", number, rows, declared);
}

const core::Ratio* ratio_of(const ScenarioResult& row) {
  const auto found = row.ratio.find("fastest");
  return found == row.ratio.end() || found->second.value <= 0 ? nullptr : &found->second;
}

std::string reference_name(const ScenarioResult& row) {
  std::string best;
  for (const auto& [name, side] : row.baselines) {
    if (side.verdict != Verdict::kCorrect || !side.time_us) continue;
    if (best.empty() || *side.time_us < *row.baselines.at(best).time_us) best = name;
  }
  return best;
}

const core::Side* reference_of(const ScenarioResult& row) {
  const std::string name = reference_name(row);
  return name.empty() ? nullptr : &row.baselines.at(name);
}

bool reference_right(const ScenarioResult& row) {
  return std::any_of(row.baselines.begin(), row.baselines.end(),
                     [](const auto& entry) { return entry.second.verdict == Verdict::kCorrect; });
}

std::vector<const ScenarioResult*> by_ratio(const core::Evaluation& record) {
  std::vector<const ScenarioResult*> rows;
  for (const auto& row : record.scenarios)
    if (row.candidate.verdict == Verdict::kCorrect && row.candidate.time_us && ratio_of(row) != nullptr)
      rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return ratio_of(*a)->value < ratio_of(*b)->value; });
  return rows;
}

bool is_timed(const core::Evaluation& record) {
  return std::any_of(record.scenarios.begin(), record.scenarios.end(),
                     [](const auto& row) { return row.candidate.time_us.has_value(); });
}

std::optional<double> geomean_of(const core::Evaluation& record) {
  const auto rows = by_ratio(record);
  if (rows.empty()) return std::nullopt;
  double sum = 0;
  for (const auto* row : rows) sum += std::log(ratio_of(*row)->value);
  return std::exp(sum / static_cast<double>(rows.size()));
}

std::optional<double> loggap_top3_share(const core::Evaluation& record, double goal) {
  std::vector<double> gaps;
  for (const auto* row : by_ratio(record)) gaps.push_back(std::max(0.0, std::log(goal / ratio_of(*row)->value)));
  std::sort(gaps.rbegin(), gaps.rend());
  const double all = std::accumulate(gaps.begin(), gaps.end(), 0.0);
  if (all <= 0) return std::nullopt;
  return std::accumulate(gaps.begin(), gaps.begin() + static_cast<long>(std::min<size_t>(3, gaps.size())), 0.0) / all;
}

std::optional<double> noise_of(const core::Evaluation& record) {
  if (!record.summary.aa_p95) return std::nullopt;
  return std::expm1(*record.summary.aa_p95);
}

std::optional<double> mean_median_gap(const core::Evaluation& record) {
  return middle(record, kFewSamples,
                [](const auto& samples) { return std::fabs(mean_of(samples) / stats::median(samples) - 1); });
}

std::optional<double> first_sample_ratio(const core::Evaluation& record) {
  return middle(record, kFewSamples, [](const auto& samples) {
    return samples.front() / stats::median(std::span<const double>(samples).subspan(1));
  });
}

std::optional<double> bimodality_gap(const core::Evaluation& record) {
  return largest(record, kManySamples, [](const auto& samples) { return heap_distance(samples); });
}

std::optional<OutsideShare> outside_share(const core::Evaluation& record) {
  std::optional<OutsideShare> result;
  for (const auto& row : record.scenarios) {
    if (!row.candidate.host_us || !row.candidate.time_us || *row.candidate.host_us <= 0) continue;
    const double share = std::max(0.0, 1 - *row.candidate.time_us / *row.candidate.host_us);
    if (!result || share > result->share) result = OutsideShare{&row, share};
  }
  return result;
}

std::optional<ErrorFigures> error_figures(const core::Evaluation& record) {
  std::optional<ErrorFigures> result;
  for (const auto& row : record.scenarios) {
    const auto* reference = reference_of(row);
    if (row.candidate.verdict != Verdict::kCorrect || !row.candidate.error || reference == nullptr) continue;
    if (!reference->error || reference->error->mean <= 0 || reference->error->worst <= 0) continue;
    const double ratio = row.candidate.error->mean / reference->error->mean;
    const double slack = reference->error->limit / reference->error->worst;
    if (!result) result = ErrorFigures{&row, ratio, slack};
    if (ratio > result->err_ratio) result->worst_row = &row, result->err_ratio = ratio;
    result->tol_slack = std::min(result->tol_slack, slack);
  }
  return result;
}

void add_record_signals(const core::Evaluation& record, const std::string& origin, std::optional<double> goal,
                        int declared, SignalSet& signals) {
  signals.set("n_configs", static_cast<double>(declared), origin);
  add_verdict_signals(record, origin, signals);
  if (const auto errors = error_figures(record)) {
    signals.set("err_ratio", errors->err_ratio, origin);
    signals.set("tol_slack", errors->tol_slack, origin);
  }
  signals.set("err_ratio_known", error_figures(record).has_value(), origin);
  add_machine_signals(record, origin, signals);
  if (!is_timed(record)) return;
  add_ratio_signals(record, origin, goal, signals);
  add_bound_signals(record, origin, signals);
  add_protocol_signals(record, origin, signals);
  signals.set_known("mean_median_gap", mean_median_gap(record), origin);
  signals.set_known("first_sample_ratio", first_sample_ratio(record), origin);
  signals.set_known("bimodality_gap", bimodality_gap(record), origin);
  if (const auto outside = outside_share(record)) signals.set("outside_share", outside->share, origin);
}

}  // namespace ks::signals
