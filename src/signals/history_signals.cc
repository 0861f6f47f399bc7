#include "signals/history_signals.h"

#include <algorithm>
#include <cmath>

#include "signals/record_signals.h"
#include "stats/intervals.h"

namespace ks::signals {
namespace {

constexpr size_t kVelocityWindow = 5;

double mean_log_ratio(const std::vector<RowChange>& changes) {
  double sum = 0;
  for (const auto& change : changes) sum += change.log_ratio;
  return changes.empty() ? 0 : sum / static_cast<double>(changes.size());
}

Version version_of(int number, const core::Evaluation& record) {
  Version version{.number = number, .hash = record.candidate_hash};
  for (const auto& row : record.scenarios) version.correct += row.candidate.verdict == core::Verdict::kCorrect;
  double sum = 0;
  for (const auto* row : by_ratio(record)) {
    const auto* reference = reference_of(*row);
    Version::Row kept{std::log(ratio_of(*row)->value), *row->candidate.time_us,
                      reference != nullptr ? *reference->time_us : 0, reference_name(*row)};
    sum += kept.log_ratio;
    version.rows.emplace(row->name, std::move(kept));
  }
  if (!version.rows.empty()) version.log_geomean = sum / static_cast<double>(version.rows.size());
  return version;
}

/// What must stay the same for figures to be comparable.
Json environment_of(const core::Evaluation& record) {
  Json environment = Json::object();
  for (const char* key : {"processor", "system", "driver", "evaluator_compiler", "versions", "threads"})
    if (record.provenance.contains(key)) environment[key] = record.provenance.at(key);
  if (record.build.contains("compiler")) environment["compiler"] = record.build.at("compiler");
  environment["device"] = record.device;
  return environment;
}

std::string device_name(const core::Evaluation& record) {
  std::string name = record.device;
  if (const auto device = record.provenance.find("device"); device != record.provenance.end() && device->is_object())
    name += " " + device->value("name", "");
  return name + " " + base::value_or<std::string>(record.provenance, "processor", "");
}

/// Over all log ratios of the two versions' common rows: four ways to say how good a version is.
std::vector<double> summaries(const Version& version, const std::vector<RowChange>& rows) {
  std::vector<double> logs;
  double ratios = 0, ours = 0, theirs = 0, sum = 0;
  for (const auto& change : rows) {
    const auto& row = version.rows.at(change.name);
    logs.push_back(row.log_ratio);
    sum += row.log_ratio;
    ratios += std::exp(row.log_ratio);
    ours += row.time_us;
    theirs += row.time_us * std::exp(row.log_ratio);
  }
  const auto n = static_cast<double>(rows.size());
  return {sum / n, stats::median(logs), std::log(ratios / n), std::log(theirs / ours)};
}

}  // namespace

std::vector<RowChange> changes_between(const Version& before, const Version& after) {
  std::vector<RowChange> changes;
  for (const auto& [name, now] : after.rows) {
    const auto found = before.rows.find(name);
    if (found == before.rows.end()) continue;
    const auto& was = found->second;
    RowChange change{name, std::exp(was.log_ratio), std::exp(now.log_ratio), now.log_ratio - was.log_ratio};
    if (now.time_us > 0 && was.time_us > 0) change.log_time = std::log(now.time_us / was.time_us);
    if (now.reference == was.reference && now.reference_us > 0 && was.reference_us > 0)
      change.log_reference = std::log(now.reference_us / was.reference_us);
    changes.push_back(std::move(change));
  }
  return changes;
}

std::optional<bool> rank_flips(const Version& before, const Version& after) {
  const auto rows = changes_between(before, after);
  if (rows.size() < 2) return std::nullopt;
  const auto old_figures = summaries(before, rows), new_figures = summaries(after, rows);
  bool up = false, down = false;
  for (size_t i = 0; i < old_figures.size(); ++i) {
    up |= new_figures[i] > old_figures[i];
    down |= new_figures[i] < old_figures[i];
  }
  return up && down;
}

void History::add(int number, const core::Evaluation& record) {
  noted_.erase(number);
  if (record.outcome != "judged" || (judged_ > 0 && number <= latest_number_)) return;
  follow(number, std::make_shared<const core::Evaluation>(record));
}

void History::note(int number, std::optional<double> geomean, const std::string& origin) {
  if (judged_ == 0 || number > latest_number_) noted_[number] = {geomean, origin};
}

void History::follow(int number, const std::shared_ptr<const core::Evaluation>& record) {
  ++judged_;
  latest_ = record;
  latest_number_ = number;
  declared_ = std::max(declared_, static_cast<int>(record->scenarios.size()));
  if (const auto noise = noise_of(*record)) noise_ = noise, noise_number_ = number;
  devices_.insert(device_name(*record));
  if (!record->candidate_hash.empty()) hashes_.insert(record->candidate_hash);
  if (!is_timed(*record)) return;
  for (const auto& row : record->scenarios)
    any_above_bound_ |= row.bound_us && row.candidate.time_us && *row.candidate.time_us < *row.bound_us;
  if (!first_) first_ = record;
  timed_ = record;
  timed_number_ = number;
  versions_.push_back(version_of(number, *record));
  follow_repeats();
  follow_best();
}

void History::follow_best() {
  const Version& version = versions_.back();
  for (const auto& [name, row] : version.rows) {
    auto [best, fresh] = row_best_.try_emplace(name, RowBest{row.log_ratio, version.number});
    if (!fresh && row.log_ratio > best->second.log_ratio) best->second = {row.log_ratio, version.number};
  }
  if (version.log_geomean) {
    // More right rows count first: a version does not become better by losing its slow rows.
    const auto rank = [](const Version& v) { return std::pair(v.correct, *v.log_geomean); };
    if (best_ < 0 || rank(version) > rank(*best())) best_ = static_cast<int>(versions_.size()) - 1;
    const bool rose = improved_at_ < 0 || version.correct > improved_correct_ ||
                      (version.correct == improved_correct_ && *version.log_geomean > improved_log_ + margin());
    if (rose) {
      improved_at_ = static_cast<int>(versions_.size()) - 1;
      improved_number_ = version.number;
      improved_log_ = *version.log_geomean;
      improved_correct_ = version.correct;
    }
  }
  if (best_ >= 0) best_logs_.push_back(*best()->log_geomean);
}

void History::follow_repeats() {
  const Version& version = versions_.back();
  if (version.hash.empty()) return;
  auto& same = by_hash_[version.hash];
  if (!same.empty() && noise_) {
    const auto changes = changes_between(versions_[same.back()], version);
    const double change = std::fabs(std::expm1(mean_log_ratio(changes)));
    if (!changes.empty() && change > 3 * *noise_)
      contradiction_ = Contradiction{versions_[same.back()].number, version.number, change};
  }
  same.push_back(versions_.size() - 1);
}

std::string History::noise_origin() const {
  return fmt::format("evaluation {}", noise_number_);
}

const Version* History::previous() const {
  return versions_.size() < 2 ? nullptr : &versions_[versions_.size() - 2];
}

std::vector<RowChange> History::last_changes() const {
  if (previous() == nullptr) return {};
  return changes_between(*previous(), versions_.back());
}

std::optional<History::Loss> History::largest_loss() const {
  if (versions_.size() < 2) return std::nullopt;
  std::optional<Loss> largest;
  for (const auto& [name, row] : versions_.back().rows) {
    const RowBest& best = row_best_.at(name);
    const double loss = -std::expm1(row.log_ratio - best.log_ratio);
    if (!largest || loss > largest->loss)
      largest = Loss{name, best.number, std::exp(best.log_ratio), std::exp(row.log_ratio), loss};
  }
  return largest;
}

void History::add_signals(std::optional<double> goal, SignalSet& signals) const {
  const size_t count = static_cast<size_t>(judged_) + noted_.size();
  const int last = std::max(latest_number_, noted_.empty() ? 0 : noted_.rbegin()->first);
  signals.set("n_evals", static_cast<double>(count), count == 0 ? "the trace" : fmt::format("evaluation {}", last));
  if (judged_ == 0) {
    double best = 0;
    for (const auto& [number, noted] : noted_) {
      if (!noted.geomean) continue;
      best = std::max(best, *noted.geomean);
      signals.set("geomean", *noted.geomean, noted.origin);
      signals.set("best_geomean", best, noted.origin);
    }
    return;
  }
  const std::string origin = origin_of(timed_number_, timed_ ? *timed_ : *latest_, declared_);
  if (timed_) add_record_signals(*timed_, origin, goal, declared_, signals);
  if (latest_ != timed_)
    add_record_signals(*latest_, origin_of(latest_number_, *latest_, declared_), goal, declared_, signals);
  if (noise_) signals.set("noise_rel", *noise_, noise_origin());
  signals.set("noise_known", noise_.has_value(), noise_ ? noise_origin() : "the records");
  add_course(signals);
  add_step(signals);
  add_session(signals);
}

void History::add_course(SignalSet& signals) const {
  if (best_ < 0) return;
  const std::string best_origin = fmt::format("evaluation {}", best()->number);
  signals.set("best_geomean", std::exp(*best()->log_geomean), best_origin);
  signals.set("evals_since_improve", static_cast<double>(static_cast<int>(versions_.size()) - 1 - improved_at_),
              fmt::format("evaluation {}", improved_number_));
  const size_t n = best_logs_.size();
  if (n >= 2) {
    const size_t back = std::min(kVelocityWindow, n - 1);
    signals.set("velocity", (best_logs_[n - 1] - best_logs_[n - 1 - back]) / static_cast<double>(back),
                fmt::format("evaluations up to {}", versions_.back().number));
  }
  if (const auto loss = largest_loss())
    signals.set("best_per_config_gap", loss->loss,
                fmt::format("evaluations {} and {}", loss->best_number, versions_.back().number));
  if (!noise_ || versions_.size() < 2) return;
  bool differs = false;
  for (const auto& [name, row] : best()->rows) differs |= row_best_.at(name).log_ratio > row.log_ratio + margin();
  signals.set("best_choice_differs", differs, fmt::format("evaluations up to {}", versions_.back().number));
}

void History::add_step(SignalSet& signals) const {
  const auto changes = last_changes();
  if (changes.empty()) return;
  const std::string origin = fmt::format("evaluations {} and {}", previous()->number, versions_.back().number);
  const double mean = mean_log_ratio(changes);
  signals.set("effect_rel", std::fabs(std::expm1(mean)), origin);
  signals.set_known("rank_flip", rank_flips(*previous(), versions_.back()), origin);
  double shift = 0, squares = 0, lowest_before = INFINITY, lowest_after = INFINITY;
  int regressed = 0, reference_moved = 0;
  for (const auto& change : changes) {
    shift += change.log_time / static_cast<double>(changes.size());
    regressed += change.log_ratio < -margin();
    reference_moved += std::fabs(change.log_reference) > margin();
    lowest_before = std::min(lowest_before, change.before);
    lowest_after = std::min(lowest_after, change.after);
  }
  for (const auto& change : changes) squares += (change.log_time - shift) * (change.log_time - shift);
  if (changes.size() >= 3) {
    signals.set("common_shift_mean", std::fabs(shift), origin);
    signals.set("common_shift_sd", std::sqrt(squares / static_cast<double>(changes.size() - 1)), origin);
  }
  if (!noise_) return;
  signals.set("geomean_up", mean > margin(), origin);
  signals.set("n_configs_regressed", static_cast<double>(regressed), origin);
  signals.set("untouched_moved", static_cast<double>(reference_moved), origin + ", times of the references");
  signals.set("ratio_min_moved", std::fabs(std::log(lowest_after / lowest_before)) > margin(), origin);
}

void History::add_session(SignalSet& signals) const {
  const std::string origin = fmt::format("evaluations up to {}", latest_number_);
  signals.set("devices_seen", static_cast<double>(devices_.size()), origin);
  if (!hashes_.empty()) signals.set("candidates_tried", static_cast<double>(hashes_.size()), origin);
  if (versions_.empty()) return;
  if (const auto found = by_hash_.find(versions_.back().hash); found != by_hash_.end())
    signals.set("n_processes", static_cast<double>(found->second.size()), origin);
  if (noise_) signals.set("contradiction", contradiction_.has_value(), origin);
  signals.set("any_above_bound", any_above_bound_, origin);
  add_repeats(signals);
  if (versions_.size() > 1) add_since_first(signals);
}

void History::add_since_first(SignalSet& signals) const {
  const std::string origin = fmt::format("evaluations up to {}", latest_number_);
  signals.set("env_changed", environment_of(*first_) != environment_of(*timed_), origin);
  std::vector<double> drift;
  double most = -INFINITY, least = INFINITY;
  for (const auto& change : changes_between(versions_.front(), versions_.back())) {
    if (change.log_reference != 0) drift.push_back(change.log_reference);
    most = std::max(most, change.log_ratio);
    least = std::min(least, change.log_ratio);
  }
  if (!drift.empty()) signals.set("drift_rel", std::fabs(std::expm1(stats::median(drift))), origin);
  if (std::isfinite(most)) signals.set("improve_spread", std::exp(most - least), origin);
}

void History::add_repeats(SignalSet& signals) const {
  const std::string origin = fmt::format("evaluations up to {}", latest_number_);
  bool aba = false;
  for (const auto& [hash, indices] : by_hash_)
    for (size_t i = 1; i < indices.size(); ++i) aba |= indices[i] > indices[i - 1] + 1;
  if (!by_hash_.empty()) signals.set("aba_done", aba, origin);
  std::vector<double> best_of_each;
  for (const auto& [hash, indices] : by_hash_) {
    std::optional<double> best;
    for (const size_t i : indices)
      if (versions_[i].log_geomean && versions_[i].correct == improved_correct_)
        best = std::max(best.value_or(-INFINITY), *versions_[i].log_geomean);
    if (best) best_of_each.push_back(*best);
  }
  std::sort(best_of_each.rbegin(), best_of_each.rend());
  if (best_of_each.size() >= 2) signals.set("winner_margin", std::expm1(best_of_each[0] - best_of_each[1]), origin);
}

}  // namespace ks::signals
