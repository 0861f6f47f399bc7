// Rows of evaluations as evidence: the slowest, those that fell back, what a step did, what stands beside a bound.
#include "signals/evidence_rows.h"

#include <algorithm>
#include <cmath>

#include "base/table.h"
#include "signals/record_signals.h"

namespace ks::signals {

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}
std::string times(double ratio) {
  return fmt::format("{:.3g}x", ratio);
}

std::string timed_origin(const Sources& s) {
  return origin_of(s.history.timed_number(), *s.history.timed(), s.history.declared());
}

std::string beginning(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes)) + "…";
}

void slot(Evidence& evidence, const char* name, std::string value) {
  evidence.slots.emplace(name, std::move(value));
}

/// The rows with the lowest ratios; the first is the focus.
Evidence worst_rows(const Sources& s) {
  Evidence evidence;
  if (s.history.timed() == nullptr) return evidence;
  const auto rows = by_ratio(*s.history.timed());
  for (size_t i = 0; i < std::min(kRowsShown, rows.size()); ++i)
    evidence.facts.push_back({ratio_fact(*rows[i]), timed_origin(s)});
  if (rows.empty()) return evidence;
  evidence.focus = rows.front()->name;
  slot(evidence, "config", rows.front()->name);
  slot(evidence, "n", fmt::format("{}", rows.size()));
  slot(evidence, "current", times(ratio_of(*rows.front())->value));
  return evidence;
}

/// Lowest beside highest.
Evidence ratio_ends(const Sources& s) {
  Evidence evidence;
  if (s.history.timed() == nullptr) return evidence;
  const auto rows = by_ratio(*s.history.timed());
  if (rows.size() < 2) return evidence;
  for (const auto* row : {rows.front(), rows.back()}) evidence.facts.push_back({ratio_fact(*row), timed_origin(s)});
  evidence.focus = rows.front()->name;
  slot(evidence, "config", rows.front()->name);
  slot(evidence, "config_a", rows.front()->name);
  slot(evidence, "config_b", rows.back()->name);
  slot(evidence, "factor", fmt::format("{:.3g}", ratio_of(*rows.back())->value / ratio_of(*rows.front())->value));
  return evidence;
}

Evidence geomean_facts(const Sources& s) {
  Evidence evidence;
  const Signal* now = s.signals.find("geomean");
  const Signal* best = s.signals.find("best_geomean");
  slot(evidence, "metric", "the geometric mean");
  if (now != nullptr) {
    const double value = std::get<double>(now->value);
    std::string text = fmt::format("geometric mean {} of the fastest", times(value));
    if (s.goal) text += fmt::format("; the goal is {}", times(*s.goal));
    evidence.facts.push_back({text, now->origin});
    slot(evidence, "current", times(value));
    if (s.goal && *s.goal > value) slot(evidence, "gap", fmt::format("a factor of {:.3g}", *s.goal / value));
  }
  if (s.goal) slot(evidence, "goal", times(*s.goal));
  if (best != nullptr && (now == nullptr || best->origin != now->origin))
    evidence.facts.push_back({fmt::format("best so far {}", times(std::get<double>(best->value))), best->origin});
  return evidence;
}

/// Rows whose ratio fell, worst first.
Evidence regressed_rows(const Sources& s) {
  Evidence evidence;
  auto changes = s.history.last_changes();
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.log_ratio < b.log_ratio; });
  for (size_t i = 0; i < std::min(kRowsShown, changes.size()) && changes[i].log_ratio < 0; ++i)
    evidence.facts.push_back(
        {fmt::format("{}: {} to {} of the fastest", changes[i].name, times(changes[i].before), times(changes[i].after)),
         fmt::format("evaluations {} and {}", s.history.previous()->number, s.history.last()->number)});
  if (evidence.facts.empty()) return evidence;
  evidence.focus = changes.front().name;
  slot(evidence, "config", changes.front().name);
  slot(evidence, "delta", percent(-std::expm1(changes.front().log_ratio)));
  slot(evidence, "n",
       fmt::format("{}", std::count_if(changes.begin(), changes.end(), [](const auto& c) { return c.log_ratio < 0; })));
  return evidence;
}

/// What the last step did to the rows as a whole.
Evidence step_facts(const Sources& s) {
  Evidence evidence;
  const auto changes = s.history.last_changes();
  if (changes.empty()) return evidence;
  double mean = 0, time = 0;
  for (const auto& change : changes) mean += change.log_ratio, time += change.log_time;
  mean = std::expm1(mean / static_cast<double>(changes.size()));
  time = std::expm1(time / static_cast<double>(changes.size()));
  const std::string origin =
      fmt::format("evaluations {} and {}", s.history.previous()->number, s.history.last()->number);
  evidence.facts.push_back(
      {fmt::format(
           "the last step changed the ratios by {:+.1f} % on average over {} scenario{}, the times by {:+.1f} %",
           100 * mean, changes.size(), changes.size() == 1 ? "" : "s", 100 * time),
       origin});
  slot(evidence, "delta", percent(std::fabs(mean)));
  slot(evidence, "effect", percent(std::fabs(mean)));
  slot(evidence, "metric", "the geometric mean");
  if (s.history.noise())
    evidence.facts.push_back(
        {fmt::format("the same binary against itself differs by up to {}", percent(*s.history.noise())),
         s.history.noise_origin()});
  return evidence;
}

Evidence noise_facts(const Sources& s) {
  Evidence evidence;
  if (s.history.noise())
    evidence.facts.push_back({fmt::format("the same binary against itself differs by up to {} (95 % of the scenarios)",
                                          percent(*s.history.noise())),
                              s.history.noise_origin()});
  else if (!s.history.empty())
    evidence.facts.push_back({"no evaluation compared the same binary with itself", "the records"});
  return evidence;
}

Evidence loss_facts(const Sources& s) {
  Evidence evidence;
  const auto loss = s.history.largest_loss();
  if (!loss || loss->loss <= 0) return evidence;
  evidence.facts.push_back(
      {fmt::format("{}: {} of the fastest then, {} now", loss->name, times(loss->best), times(loss->now)),
       fmt::format("evaluations {} and {}", loss->best_number, s.history.last()->number)});
  evidence.focus = loss->name;
  slot(evidence, "config", loss->name);
  slot(evidence, "delta", percent(loss->loss));
  return evidence;
}

Evidence course_facts(const Sources& s) {
  Evidence evidence = geomean_facts(s);
  if (const auto since = s.signals.number("evals_since_improve")) {
    evidence.facts.push_back({fmt::format("{:.0f} evaluations since the best rose by more than the noise", *since),
                              fmt::format("evaluation {}", s.history.improved_number())});
    slot(evidence, "n", fmt::format("{:.0f}", *since));
  }
  evidence.add(worst_rows(s));
  return evidence;
}

Evidence bound_facts(const Sources& s) {
  Evidence evidence;
  if (s.history.timed() == nullptr) return evidence;
  for (const auto* row : by_ratio(*s.history.timed())) {
    if (!row->bound_us || !row->candidate.time_us) continue;
    evidence.facts.push_back(
        {fmt::format("{}: {} a call; the bound from the device's peak rates is {}", row->name,
                     base::format_time_us(*row->candidate.time_us), base::format_time_us(*row->bound_us)),
         timed_origin(s)});
    evidence.focus = row->name;
    slot(evidence, "config", row->name);
    slot(evidence, "bound", base::format_time_us(*row->bound_us));
    slot(evidence, "current", base::format_time_us(*row->candidate.time_us));
    slot(evidence, "gap", base::format_time_us(*row->candidate.time_us - *row->bound_us));
    slot(evidence, "metric", "the time of " + row->name);
    break;
  }
  return evidence;
}

Evidence outside_facts(const Sources& s) {
  Evidence evidence;
  if (s.history.timed() == nullptr) return evidence;
  const auto outside = outside_share(*s.history.timed());
  if (!outside) return evidence;
  const auto& side = outside->row->candidate;
  evidence.facts.push_back(
      {fmt::format("{}: {} a call with the host, {} on the device ({} outside)", outside->row->name,
                   base::format_time_us(*side.host_us), base::format_time_us(*side.time_us), percent(outside->share)),
       timed_origin(s)});
  evidence.focus = outside->row->name;
  slot(evidence, "config", outside->row->name);
  slot(evidence, "wall_time", base::format_time_us(*side.host_us));
  slot(evidence, "kernel_time", base::format_time_us(*side.time_us));
  return evidence;
}

Evidence verdict_facts(const Sources& s) {
  Evidence evidence;
  if (s.history.latest() == nullptr) return evidence;
  const auto& record = *s.history.latest();
  const std::string origin = origin_of(s.history.latest_number(), record, s.history.declared());
  for (const auto& row : record.scenarios) {
    if (row.candidate.verdict == core::Verdict::kCorrect || row.candidate.verdict == core::Verdict::kNotRun) continue;
    if (evidence.facts.empty()) evidence.focus = row.name, slot(evidence, "config", row.name);
    if (evidence.facts.size() < kRowsShown)
      evidence.facts.push_back(
          {fmt::format("{}: {}{}{}", row.name, core::verdict_name(row.candidate.verdict),
                       row.candidate.reason.empty() ? "" : ", ", beginning(row.candidate.reason, 160)),
           origin});
  }
  return evidence;
}

Evidence error_facts(const Sources& s) {
  Evidence evidence;
  if (s.history.latest() == nullptr) return evidence;
  const auto figures = error_figures(*s.history.latest());
  const std::string origin = origin_of(s.history.latest_number(), *s.history.latest(), s.history.declared());
  if (!figures) return evidence;
  const auto& row = *figures->worst_row;
  const auto* reference = reference_of(row);
  evidence.facts.push_back(
      {fmt::format("{}: mean row error {:.2g} ours, {:.2g} the reference's ({}), {:.2g} allowed", row.name,
                   row.candidate.error->mean, reference->error->mean, reference_name(row), row.candidate.error->limit),
       origin});
  evidence.focus = row.name;
  slot(evidence, "config", row.name);
  return evidence;
}

}  // namespace ks::signals
