// The signals of the trace from what TraceFollower keeps.
#include <algorithm>
#include <array>

#include "signals/trace_signals.h"
#include "stats/intervals.h"

namespace ks::signals {

void TraceFollower::add_signals(SignalSet& signals) const {
  if (events_ == 0) return;
  add_budget(signals);
  add_edits(signals);
  add_tools(signals);
  add_reading(signals);
  add_claims(signals);
  add_talk(signals);
}

void TraceFollower::add_budget(SignalSet& signals) const {
  std::optional<double> left;
  auto budgets = budgets_;
  if (const auto found = budgets.find("minutes"); found != budgets.end() && found->second.first == 0 && started_ > 0)
    found->second.first = (last_time_ - started_ - paused_s_) / 60;
  for (const auto& [name, budget] : budgets) {
    const auto [used, limit] = budget;
    if (limit > 0) left = std::min(left.value_or(1.0), std::clamp(1 - used / limit, 0.0, 1.0));
  }
  signals.set_known("budget_left", left, last_origin_);
  if (answers_ > 0 || asked_.empty()) signals.set("open_questions", static_cast<double>(open_.size()), last_origin_);
  if (judgements_ > 0 || has_run_start_) signals.set("heldout_evals", static_cast<double>(heldout_), last_origin_);
}

void TraceFollower::add_edits(SignalSet& signals) const {
  const auto set = [&](const char* name, int value) { signals.set(name, static_cast<double>(value), last_origin_); };
  set("edits_since_bench", edits(&Since::bench));
  set("edits_since_test", edits(&Since::test));
  if (tool_calls_ > 0) set("edits_since_profile", edits(&Since::profile));
  if (evaluations_ > 0) signals.set("binary_stale", edits(&Since::evaluation) > 0, evaluation_origin_);
  if (evaluations_ > 1)
    signals.set("changes_per_eval", static_cast<double>(edits(&Since::before_last_evaluation)), evaluation_origin_);
  if (!past_edits_.empty()) {
    std::vector<double> lines;
    int literal = 0, reverts = 0;
    for (size_t back = 1; back <= std::min<size_t>(8, past_edits_.size()); ++back) {
      const PastEdit& edit = past_edits_[past_edits_.size() - back];
      literal += edit.literals_only;
      if (back <= 5) lines.push_back(edit.lines), reverts += edit.reverts;
    }
    signals.set("median_diff_lines", stats::median(lines), last_origin_);
    set("param_only_edits", literal);
    if (has_edit_texts_) set("reverted_recent", reverts);
    signals.set("bench_edited_by_agent", bench_edit_origin_.has_value(), bench_edit_origin_.value_or(last_origin_));
    signals.set("harness_touched", bench_edit_origin_.has_value(), bench_edit_origin_.value_or(last_origin_));
    if (evaluations_ > 0) signals.set("notes_updated", notes_at_ && evaluations_ - *notes_at_ <= 8, last_origin_);
  }
  if (has_edit_texts_)
    signals.set("numeric_type_changed", type_change_origin_.has_value(), type_change_origin_.value_or(last_origin_));
  if (levels_of_change_) signals.set("levels_tested", static_cast<double>(*levels_of_change_), evaluation_origin_);
}

void TraceFollower::add_tools(SignalSet& signals) const {
  const int steps = std::max(steps_since_evaluation_, edits(&Since::evaluation));
  signals.set("steps_since_eval", static_cast<double>(steps), last_origin_);
  signals.set("compactions", static_cast<double>(compactions_), last_origin_);
  if (tool_calls_ > 0) {
    signals.set("profiler_runs", static_cast<double>(profiler_runs_),
                profiler_runs_ > 0 ? profile_origin_ : last_origin_);
    signals.set("breakdown_known", profiler_runs_ > 0, profiler_runs_ > 0 ? profile_origin_ : last_origin_);
    signals.set("dispatch_seen", profiler_runs_ > 0 && edits(&Since::profile) == 0,
                profiler_runs_ > 0 ? profile_origin_ : last_origin_);
    signals.set("research_done", has_research_, last_origin_);
  }
  if (tool_kinds_.size() == kToolWindow) {
    const std::set<std::string> kinds(tool_kinds_.begin(), tool_kinds_.end());
    signals.set("tool_kinds_recent", static_cast<double>(kinds.size()), last_origin_);
  }
  if (has_commands_) {
    signals.set("same_command_fail", static_cast<double>(command_streak_), last_origin_);
    if (agent_messages_ > 0) signals.set("errors_ignored", static_cast<double>(errors_pending_), last_origin_);
  }
  if (strategies_.empty()) return;
  const std::set<std::string> distinct(strategies_.begin(), strategies_.end());
  signals.set("distinct_strategies", static_cast<double>(distinct.size()), last_origin_);
  const auto other = std::find_if(strategies_.rbegin(), strategies_.rend(),
                                  [&](const std::string& tag) { return tag != strategies_.back(); });
  signals.set("same_strategy_streak", static_cast<double>(other - strategies_.rbegin()), last_origin_);
  signals.set("strategy_repeat", std::find(other, strategies_.rend(), strategies_.back()) != strategies_.rend(),
              last_origin_);
}

void TraceFollower::add_reading(SignalSet& signals) const {
  if (window_.chars <= 0 || results_.size() < 5) return;
  const auto chars = static_cast<double>(window_.chars);
  const std::string origin = fmt::format("the last {} tool results up to {}", results_.size(), last_origin_);
  signals.set("own_source_read_share", static_cast<double>(window_.own) / chars, origin);
  signals.set("ref_source_read_share", static_cast<double>(window_.reference) / chars, origin);
}

namespace {
constexpr std::array kClaimNames = {"done",     "limit",     "improved", "infeasible",  "cause",
                                    "tradeoff", "no_effect", "enough",   "unobservable"};
}

const Claim* TraceFollower::latest_claim() const {
  const Claim* latest = nullptr;
  for (const char* name : kClaimNames)
    if (const Claim* claim = standing(name);
        claim != nullptr && (latest == nullptr || claim->evaluations >= latest->evaluations))
      latest = claim;
  return latest;
}

void TraceFollower::add_claims(SignalSet& signals) const {
  if (agent_messages_ == 0 && claims_.empty() && !has_run_start_) return;
  for (const char* name : kClaimNames) {
    const Claim* claim = standing(name);
    signals.set(std::string("claims_") + name, claim != nullptr, claim != nullptr ? claim->origin : last_origin_);
  }
  const Claim* latest = latest_claim();
  if (first_limit_edits_) {
    signals.set("limit_age_edits", static_cast<double>(*limit_age_edits()), last_origin_);
    signals.set("limit_tries", static_cast<double>(evaluations_ - first_limit_evaluations_), last_origin_);
  }
  if (latest == nullptr) return;
  signals.set("claim_has_number", latest->has_number, latest->origin);
  if (!latest->has_number) return;
  signals.set("claim_has_command", latest->number_is_on_record, latest->origin);
  signals.set("number_age_edits", static_cast<double>(latest->edits_since_evaluation), latest->origin);
}

void TraceFollower::add_talk(SignalSet& signals) const {
  if (agent_messages_ == 0) return;
  signals.set("asks_permission", asks_permission_, message_origin_);
  int mentions = 0;
  for (const int count : goal_mentions_) mentions += count;
  if (goal_mentions_.size() == kMessageWindow)
    signals.set("goal_mentions", static_cast<double>(mentions), message_origin_);
  if (options_ == 0) return;
  signals.set("options_listed", static_cast<double>(options_), message_origin_);
  signals.set("options_estimated", static_cast<double>(options_estimated_), message_origin_);
}

}  // namespace ks::signals
