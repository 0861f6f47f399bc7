// Evidence along the axes of the grid: switches, sizes, what no row has.
#include "base/table.h"
#include "signals/evidence_rows.h"
#include "signals/record_signals.h"

namespace ks::signals {

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

namespace {

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

}  // namespace

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

Evidence never_facts(const Sources& s) {
  Evidence evidence;
  if (s.grids == nullptr || s.history.latest() == nullptr) return evidence;
  const auto never = features_never(*s.history.latest(), *s.grids);
  if (never.empty()) return evidence;
  evidence.facts.push_back(
      {fmt::format("in the operator's grids and in no scenario of this one: \"{}\"", fmt::join(never, "\", \"")),
       origin_of(s.history.latest_number(), *s.history.latest(), s.history.declared())});
  slot(evidence, "n", fmt::format("{}", never.size()));
  return evidence;
}

}  // namespace ks::signals
