#include "signals/signal_tracker.h"

#include <set>

#include "goal/goal.h"
#include "signals/evidence_facts.h"
#include "signals/record_signals.h"

namespace ks::signals {
namespace {

constexpr double kSlowRow = 0.8;

std::optional<double> target_of(const std::string& goal_text) {
  if (goal_text.empty()) return std::nullopt;
  try {
    return goal::Goal(goal_text).target("geomean");
  } catch (const Error&) {
    return std::nullopt;  // a transcript may hold anything in this place
  }
}

}  // namespace

struct SignalTracker::State {
  TrackerOptions options;
  History history;
  TraceFollower trace;
  std::optional<double> goal;
  std::string goal_text;
  std::string grids_of;  ///< operator whose grids were read
  std::optional<OperatorGrids> grids;
  std::set<double> grid_sizes;         ///< numbers of 16 and more in the scenarios' sizes
  std::set<std::string> explained;     ///< rows that a message gave a cause and a number for
  std::optional<SignalSet> grid_part;  ///< signals along the axes of the last timed record

  void learn_goal(const std::string& text) {
    if (text.empty() || text == goal_text) return;
    goal_text = text;
    goal = target_of(text);
  }
  void learn_grid(const core::Evaluation& record);
  void learn_explanation();
  SignalSet compute() const;
  void add_joint(SignalSet& signals) const;
  EvidenceSources sources(const SignalSet& signals) const {
    return {history, trace, signals, goal, grids ? &*grids : nullptr};
  }
};

void SignalTracker::State::learn_grid(const core::Evaluation& record) {
  if (grids_of != record.operator_name) {
    grids_of = record.operator_name;
    grids = read_operator_grids(record.operator_name);
  }
  for (const auto& row : record.scenarios)
    for (const auto& [column, text] : row.values)
      if (const auto numbers = numbers_of(text))
        for (const double number : *numbers)
          if (number >= 16) grid_sizes.insert(number);
  if (history.latest() == nullptr) return;
  // The axes of the grid cost more than the rest, so they are looked at once for each record.
  const auto* shown = history.timed() != nullptr ? history.timed() : history.latest();
  const int number = history.timed() != nullptr ? history.timed_number() : history.latest_number();
  grid_part.emplace();
  add_axis_signals(*shown, grids ? &*grids : nullptr, history.noise(), origin_of(number, *shown, history.declared()),
                   *grid_part);
}

/// A message with a cause and a number explains the slow rows that it names.
void SignalTracker::State::learn_explanation() {
  const std::string& text = trace.explanation();
  if (text.empty() || history.timed() == nullptr) return;
  for (const auto& row : history.timed()->scenarios)
    if (text.find(row.name) != std::string::npos) explained.insert(row.name);
}

/// Signals that need the trace and the records together.
void SignalTracker::State::add_joint(SignalSet& signals) const {
  const std::string origin = history.timed() == nullptr ? "" : fmt::format("evaluation {}", history.timed_number());
  if (history.timed() != nullptr && !trace.empty()) {
    int slow = 0;
    for (const auto* row : by_ratio(*history.timed()))
      slow += ratio_of(*row)->value < kSlowRow && !explained.contains(row->name);
    signals.set("n_unexplained_slow", static_cast<double>(slow), origin + " beside the agent's messages");
  }
  if (trace.has_edit_texts() && !grid_sizes.empty()) {
    bool literal = false;
    for (const double size : trace.compared_sizes()) literal |= grid_sizes.contains(size);
    signals.set("shape_literals", literal, "the agent's edits beside the grid");
  }
  if (const auto* best = history.best())
    signals.set_known("best_tagged", trace.is_kept(best->number), fmt::format("evaluation {}", best->number));
  // Rows that the last evaluation before a claim gave a ratio for.
  for (const char* name : {"limit", "cause", "done", "improved"})
    if (trace.standing(name) != nullptr)
      if (const auto reported = signals.number("n_configs_reported")) signals.set("claim_configs", *reported, origin);
  if (history.timed() == nullptr) return;
  bool twice = true;
  for (const auto& row : history.timed()->scenarios) {
    // Two equal calls are compared where a round of all sides takes less than the check's budget of 2 s.
    double round_us = row.candidate.time_us.value_or(0);
    for (const auto& [baseline, side] : row.baselines) round_us += side.time_us.value_or(0);
    twice &= row.candidate.verdict != core::Verdict::kCorrect || round_us < 1e6;
  }
  signals.set("determinism_checked", twice, origin + ", the evaluator's protocol");
}

SignalSet SignalTracker::State::compute() const {
  SignalSet signals;
  if (grid_part) signals = *grid_part;
  if (goal) signals.set("goal", *goal, options.goal.empty() ? "run_start" : "the goal expression");
  trace.add_signals(signals);
  history.add_signals(goal, signals);
  add_joint(signals);
  return signals;
}

SignalTracker::SignalTracker(TrackerOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->learn_goal(state_->options.goal);
}

SignalTracker::~SignalTracker() = default;
SignalTracker::SignalTracker(SignalTracker&&) noexcept = default;
SignalTracker& SignalTracker::operator=(SignalTracker&&) noexcept = default;

void SignalTracker::on_event(const trace::Event& event) {
  state_->trace.on_event(event);
  if (event.kind == "run_start" && state_->options.goal.empty()) state_->learn_goal(state_->trace.goal());
  if (event.kind == "message") state_->learn_explanation();
  if (event.kind != "evaluation") return;
  const auto number = event.body.find("number");
  const auto geomean = event.body.find("geomean");
  if (number == event.body.end() || !number->is_number_integer()) return;
  if (base::value_or<std::string>(event.body, "outcome", "judged") != "judged") return;
  state_->history.note(
      number->get<int>(),
      geomean != event.body.end() && geomean->is_number() ? std::optional(geomean->get<double>()) : std::nullopt,
      fmt::format("trace event {}", event.seq));
}

void SignalTracker::on_evaluation(int number, const core::Evaluation& evaluation) {
  state_->history.add(number, evaluation);
  state_->learn_grid(evaluation);
}

SignalSet SignalTracker::current() const {
  return state_->compute();
}

Evidence SignalTracker::evidence(std::string_view signal) const {
  const SignalSet signals = state_->compute();
  return evidence_for(signal, state_->sources(signals));
}

Evidence SignalTracker::evidence(const std::vector<std::string>& names) const {
  const SignalSet signals = state_->compute();
  Evidence all;
  for (const auto& name : names) all.add(evidence_for(name, state_->sources(signals)));
  return all;
}

}  // namespace ks::signals
