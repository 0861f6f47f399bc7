#include <algorithm>
#include <array>
#include <utility>

#include "signals/evidence_rows.h"
#include "signals/record_signals.h"
#include "signals/signal_list.h"

namespace ks::signals {
namespace {

/// The agent's own sentence: of one kind of claim, or of the one that was made last.
Evidence claim_facts(std::string_view signal, const Sources& s) {
  Evidence evidence;
  constexpr std::string_view kKind = "claims_";
  const Claim* claim =
      signal.starts_with(kKind) ? s.trace.standing(std::string(signal.substr(kKind.size()))) : s.trace.latest_claim();
  if (claim == nullptr) return evidence;
  const std::string quote = beginning(claim->sentence, 160);
  evidence.facts.push_back({fmt::format("the agent: \"{}\"", quote), claim->origin});
  slot(evidence, "claim", quote);
  if (signal == "claims_cause") slot(evidence, "cause", quote);
  return evidence;
}

Evidence command_facts(const Sources& s) {
  Evidence evidence;
  if (s.trace.command_streak() < 2) return evidence;
  evidence.facts.push_back({fmt::format("`{}` ended alike {} times in a row", beginning(s.trace.last_command(), 120),
                                        s.trace.command_streak()),
                            s.signals.find("same_command_fail")->origin});
  slot(evidence, "command", beginning(s.trace.last_command(), 60));
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
  if (const auto* truth = std::get_if<bool>(&signal->value)) {
    evidence.facts.push_back({fmt::format("{}{}", *truth ? "" : "it is not so that ", info->meaning), signal->origin});
    return evidence;
  }
  std::string value = value_text(signal->value);
  if (const auto number = s.signals.number(name); number && info->kind == SignalKind::kShare) value = percent(*number);
  const bool says_unit = info->unit != "" && info->kind != SignalKind::kShare && info->kind != SignalKind::kCount;
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
  if (signal.starts_with("claims_") || signal == "claim_has_number") evidence = claim_facts(signal, sources);
  return evidence.empty() ? value_facts(signal, sources) : evidence;
}

}  // namespace ks::signals
