#include "signals/evidence_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/table.h"
#include "signals/record_signals.h"
#include "signals/signal_list.h"

namespace ks::signals {
namespace {

using Sources = EvidenceSources;
constexpr size_t kRowsShown = 3;

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}
std::string times(double ratio) {
  return fmt::format("{:.3g}x", ratio);
}

std::string timed_origin(const Sources& s) {
  return origin_of(s.history.timed_number(), *s.history.timed(), s.history.declared());
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
      {fmt::format("the last step changed the ratios by {:+.1f} % on average over {} scenarios, the times by {:+.1f} %",
                   100 * mean, changes.size(), 100 * time),
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

Evidence switch_facts(const Sources& s) {
  Evidence evidence;
  if (s.history.timed() == nullptr) return evidence;
  const AxisView view(*s.history.timed());
  const auto pair = view.widest_switch();
  if (!pair) return evidence;
  const auto value = [&](const core::ScenarioResult* row) { return row->values.at(pair->column); };
  for (const auto* row : {pair->slow, pair->fast})
    evidence.facts.push_back({fmt::format("{} ({} {})", ratio_fact(*row), pair->column, value(row)), timed_origin(s)});
  evidence.focus = pair->slow->name;
  slot(evidence, "feature", value(pair->slow));
  slot(evidence, "axis", pair->column);
  slot(evidence, "config", pair->slow->name);
  slot(evidence, "config_a", pair->slow->name);
  slot(evidence, "config_b", pair->fast->name);
  return evidence;
}

Evidence unswept_facts(const Sources& s) {
  Evidence evidence;
  if (s.history.timed() == nullptr) return evidence;
  const AxisView view(*s.history.timed());
  const auto unswept = view.unswept();
  if (unswept.empty()) return evidence;
  evidence.facts.push_back(
      {fmt::format("no two scenarios differ in one of these alone: {}", fmt::join(unswept, ", ")), timed_origin(s)});
  slot(evidence, "axis", unswept.front());
  return evidence;
}

Evidence pair_facts(const Sources& s, const std::optional<RowPair>& pair, const std::string& what) {
  Evidence evidence;
  if (!pair) return evidence;
  const auto shown = [](const core::ScenarioResult* row) {
    return fmt::format("{}: {}", row->name,
                       row->candidate.time_us ? base::format_time_us(*row->candidate.time_us) : "not timed");
  };
  evidence.facts.push_back({fmt::format("{}; {} ({}{}{:.3g})", shown(pair->first), shown(pair->second), pair->axis,
                                        pair->axis.empty() ? what : ", " + what, pair->value),
                            timed_origin(s)});
  evidence.focus = pair->first->name;
  slot(evidence, "config", pair->first->name);
  slot(evidence, "config_a", pair->first->name);
  slot(evidence, "config_b", pair->second->name);
  if (!pair->axis.empty()) slot(evidence, "axis", pair->axis);
  return evidence;
}

Evidence axis_facts(std::string_view signal, const Sources& s) {
  if (s.history.timed() == nullptr) return {};
  const AxisView view(*s.history.timed());
  if (signal == "nonmonotone")
    return pair_facts(s, view.slower_though_smaller(s.history.noise().value_or(0)),
                      "the smaller takes longer by a factor of ");
  if (signal == "neighbour_drop")
    return pair_facts(s, view.widest_neighbours(), "operations a second differ by a factor of ");
  if (signal == "err_slope") return pair_facts(s, view.steepest_error(), "the error grows with an exponent of ");
  return pair_facts(s, view.worst_exponent(), "the exponent of time against the bound is off by ");
}

Evidence verdict_facts(const Sources& s) {
  Evidence evidence;
  if (s.history.latest() == nullptr) return evidence;
  const auto& record = *s.history.latest();
  const std::string origin = origin_of(s.history.latest_number(), record, s.history.declared());
  for (const auto& row : record.scenarios) {
    if (row.candidate.verdict == core::Verdict::kCorrect) continue;
    if (evidence.facts.empty()) evidence.focus = row.name, slot(evidence, "config", row.name);
    if (evidence.facts.size() < kRowsShown)
      evidence.facts.push_back(
          {fmt::format("{}: {}{}{}", row.name, core::verdict_name(row.candidate.verdict),
                       row.candidate.reason.empty() ? "" : ", ", row.candidate.reason.substr(0, 160)),
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

Evidence never_facts(const Sources& s) {
  Evidence evidence;
  if (s.grids == nullptr || s.history.latest() == nullptr) return evidence;
  const auto never = features_never(*s.history.latest(), *s.grids);
  if (never.empty()) return evidence;
  evidence.facts.push_back(
      {fmt::format("in the operator's grids and in no scenario of this one: {}", fmt::join(never, ", ")),
       origin_of(s.history.latest_number(), *s.history.latest(), s.history.declared())});
  slot(evidence, "n", fmt::format("{}", never.size()));
  return evidence;
}

Evidence claim_facts(std::string_view signal, const Sources& s) {
  Evidence evidence;
  const Claim* claim = s.trace.standing(std::string(signal.substr(std::string_view("claims_").size())));
  if (claim == nullptr) return evidence;
  const std::string quote = claim->sentence.substr(0, 160);
  evidence.facts.push_back({fmt::format("the agent: \"{}\"", quote), claim->origin});
  slot(evidence, "claim", quote);
  slot(evidence, "cause", quote);
  return evidence;
}

Evidence command_facts(const Sources& s) {
  Evidence evidence;
  if (s.trace.command_streak() < 2) return evidence;
  evidence.facts.push_back({fmt::format("`{}` ended alike {} times in a row", s.trace.last_command().substr(0, 120),
                                        s.trace.command_streak()),
                            s.signals.find("same_command_fail")->origin});
  slot(evidence, "command", s.trace.last_command().substr(0, 60));
  slot(evidence, "n", fmt::format("{}", s.trace.command_streak()));
  return evidence;
}

Evidence question_facts(const Sources& s) {
  Evidence evidence;
  for (const auto& question : s.trace.open_questions())
    if (evidence.facts.size() < kRowsShown)
      evidence.facts.push_back({fmt::format("asked and open: [{}]", question.id), question.origin});
  return evidence;
}

Evidence contradiction_facts(const Sources& s) {
  Evidence evidence;
  const auto& found = s.history.contradiction();
  if (!found) return evidence;
  evidence.facts.push_back({fmt::format("two evaluations of one candidate differ by {}", percent(found->change)),
                            fmt::format("evaluations {} and {}", found->first, found->second)});
  slot(evidence, "a", fmt::format("evaluation {}", found->first));
  slot(evidence, "b", fmt::format("evaluation {}", found->second));
  slot(evidence, "delta", percent(found->change));
  return evidence;
}

/// The value itself, in words, for signals that have no rows behind them.
Evidence value_facts(std::string_view name, const Sources& s) {
  Evidence evidence;
  const Signal* signal = s.signals.find(name);
  const SignalInfo* info = find_signal(name);
  if (signal == nullptr || info == nullptr) return evidence;
  std::string value = value_text(signal->value);
  if (const auto number = s.signals.number(name); number && info->kind == SignalKind::kShare) value = percent(*number);
  const bool says_unit = info->unit != "" && info->unit != "share";
  if (says_unit) value += fmt::format(" {}", info->unit);
  evidence.facts.push_back({fmt::format("{}: {}", info->meaning, value), signal->origin});
  slot(evidence, "n", value_text(signal->value));
  return evidence;
}

}  // namespace

std::string ratio_fact(const core::ScenarioResult& row) {
  const auto* ratio = ratio_of(row);
  if (ratio == nullptr) return row.name + ": no ratio";
  const std::string against = reference_name(row);
  return fmt::format("{}: {:.3g}x of the fastest{} ({:.3g} to {:.3g})", row.name, ratio->value,
                     against.empty() ? "" : ", " + against, ratio->low, ratio->high);
}

Evidence evidence_for(std::string_view signal, const EvidenceSources& sources) {
  if (!sources.signals.knows(signal)) return {};
  using Function = Evidence (*)(const Sources&);
  static const std::map<std::string_view, Function> kFacts = {{"geomean", geomean_facts},
                                                              {"best_geomean", geomean_facts},
                                                              {"goal", geomean_facts},
                                                              {"ratio_min", worst_rows},
                                                              {"loggap_top3_share", worst_rows},
                                                              {"ratio_min_moved", worst_rows},
                                                              {"n_unexplained_slow", worst_rows},
                                                              {"ratio_spread", ratio_ends},
                                                              {"ratio_max", ratio_ends},
                                                              {"work_ratio_error", ratio_ends},
                                                              {"n_configs_regressed", regressed_rows},
                                                              {"effect_rel", step_facts},
                                                              {"geomean_up", step_facts},
                                                              {"common_shift_mean", step_facts},
                                                              {"common_shift_sd", step_facts},
                                                              {"rank_flip", step_facts},
                                                              {"noise_rel", noise_facts},
                                                              {"noise_known", noise_facts},
                                                              {"best_per_config_gap", loss_facts},
                                                              {"best_choice_differs", loss_facts},
                                                              {"evals_since_improve", course_facts},
                                                              {"velocity", course_facts},
                                                              {"frac_of_bound", bound_facts},
                                                              {"bound_known", bound_facts},
                                                              {"any_above_bound", bound_facts},
                                                              {"outside_share", outside_facts},
                                                              {"feature_gap_rel", switch_facts},
                                                              {"axes_unswept", unswept_facts},
                                                              {"n_correct_frac", verdict_facts},
                                                              {"n_unsupported", verdict_facts},
                                                              {"feature_parity", verdict_facts},
                                                              {"err_ratio", error_facts},
                                                              {"tol_slack", error_facts},
                                                              {"err_ratio_known", error_facts},
                                                              {"scenario_features_never", never_facts},
                                                              {"same_command_fail", command_facts},
                                                              {"open_questions", question_facts},
                                                              {"contradiction", contradiction_facts}};
  constexpr std::array<std::string_view, 4> kAxis = {"nonmonotone", "neighbour_drop", "size_exponent_error",
                                                     "err_slope"};
  Evidence evidence;
  if (const auto found = kFacts.find(signal); found != kFacts.end()) evidence = found->second(sources);
  if (std::find(kAxis.begin(), kAxis.end(), signal) != kAxis.end()) evidence = axis_facts(signal, sources);
  if (signal.starts_with("claims_")) evidence = claim_facts(signal, sources);
  return evidence.empty() ? value_facts(signal, sources) : evidence;
}

}  // namespace ks::signals
