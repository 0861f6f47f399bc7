#include "steering/select.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/hash.h"

namespace ks::steering {
namespace {

/// An entry that passed the gates, with what it would say.
struct Candidate {
  Considered considered;
  Message message;
  int category_last_asked = -1;
  std::string coin;
};

std::string gate_on_moment(const SteeringState& state, const SelectionPolicy& policy) {
  if (state.is_tool_running) return "a tool call is running";
  if (state.is_measurement_under_way && state.steps_since_edit <= policy.steps_after_edit)
    return fmt::format("the measurement of an edit {} steps ago is under way", state.steps_since_edit);
  if (state.is_stop_requested || state.asked.empty()) return "";
  const int since = state.n_evaluations - state.asked.back().evaluation;
  if (since >= policy.evaluations_between) return "";
  return fmt::format("{} evaluations since the last question; {} are the least", since, policy.evaluations_between);
}

bool reads(const Question& question, const std::string& name) {
  const auto& names = question.trigger.signals();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Tier tier_of(const Question& question, const SteeringState& state) {
  if (question.is_invalidity) return Tier::kInvalidity;
  for (const auto& name : question.trigger.signals())
    if (name.starts_with("claims_") && state.signals.truth(name) == std::optional<bool>(true)) return Tier::kClaim;
  return Tier::kCourse;
}

/// Which of the three steps of a plateau a category belongs to.
int plateau_step(const std::string& category) {
  if (category == "agent_process") return 0;
  if (category == "measurement_check" || category == "bound_differencing" || category == "gap_triage" ||
      category == "benchmark_validity")
    return 1;
  return 2;
}

/// The step that a plateau has come to: one more with every question asked since it began. -1: no plateau.
int present_step(const SteeringState& state, const SelectionPolicy& policy) {
  const auto flat = state.signals.number("evals_since_improve");
  if (!flat || *flat < policy.plateau_evaluations) return -1;
  const double began = state.n_evaluations - *flat + policy.plateau_evaluations;
  const auto asked = std::count_if(state.asked.begin(), state.asked.end(),
                                   [&](const Asked& asked) { return asked.evaluation >= began; });
  return static_cast<int>(std::min<std::ptrdiff_t>(asked, 2));
}

/// Questions about the course of work that goes well are kept back.
std::string gate_on_course(const Question& question, double severity, const SteeringState& state,
                           const SelectionPolicy& policy) {
  const auto flat = state.signals.number("evals_since_improve");
  const auto geomean = state.signals.number("geomean"), goal = state.signals.number("goal");
  if (geomean && goal && *geomean >= *goal && reads(question, "evals_since_improve"))
    return "the goal is met: a plateau calls for nothing";
  if (geomean && goal && *geomean >= *goal && severity < policy.severity_while_improving)
    return fmt::format("the goal is met, and the severity is below {}", policy.severity_while_improving);
  if (flat && *flat < 1 && severity < policy.severity_while_improving)
    return fmt::format("the work improves, and the severity is below {}", policy.severity_while_improving);
  return "";
}

/// The log, by entry and by category.
struct Log {
  std::map<std::string, const Asked*> last_of_entry;
  std::map<std::string, int> last_of_category, unanswered, closed_since;

  Log(const std::vector<Asked>& asked, const SelectionPolicy& policy) {
    for (const Asked& one : asked) {
      last_of_entry[one.id] = &one;
      last_of_category[one.category] = one.evaluation;
      if (!one.answered) continue;
      int& count = unanswered[one.category];
      count = *one.answered ? 0 : count + 1;
      if (count < policy.unanswered_to_close) continue;
      closed_since[one.category] = one.evaluation;
      count = 0;
    }
  }
};

std::string gate_on_entry(const Question& question, const SteeringState& state, const SelectionPolicy& policy,
                          const Log& log, int step) {
  if (const auto closed = log.closed_since.find(question.category);
      closed != log.closed_since.end() && state.n_evaluations - closed->second < policy.closed_evaluations)
    return fmt::format("its category is closed: {} questions without an answer", policy.unanswered_to_close);
  if (const auto last = log.last_of_entry.find(question.id); last != log.last_of_entry.end()) {
    const int since = state.n_evaluations - last->second->evaluation;
    if (since < policy.rest_evaluations)
      return fmt::format("it rests: asked {} evaluations ago, {} are the least", since, policy.rest_evaluations);
  }
  if (step >= 0 && reads(question, "evals_since_improve") && plateau_step(question.category) > step &&
      tier_of(question, state) == Tier::kCourse)
    return step == 0 ? "a plateau begins with what was learned" : "a plateau goes on with measurements and bounds";
  return "";
}

bool goes_before(const Candidate& a, const Candidate& b) {
  if (a.considered.tier != b.considered.tier) return a.considered.tier < b.considered.tier;
  if (a.considered.severity != b.considered.severity) return a.considered.severity > b.considered.severity;
  if (a.category_last_asked != b.category_last_asked) return a.category_last_asked < b.category_last_asked;
  return a.coin < b.coin;
}

/// Gates on one entry that fires; a candidate where it passes them, else the reason in `considered.gate`.
std::optional<Candidate> weigh(Considered& considered, const SteeringState& state, const SelectionPolicy& policy,
                               const Log& log, int step) {
  const Question& question = *considered.question;
  considered.gate = gate_on_entry(question, state, policy, log, step);
  if (considered.gate.empty() && considered.tier == Tier::kCourse)
    considered.gate = gate_on_course(question, considered.severity, state, policy);
  if (!considered.gate.empty()) return std::nullopt;
  const signals::Evidence evidence = gather(question, state.evidence);
  const auto message = fill(question, state.signals, evidence, considered.gate);
  if (!message) return std::nullopt;
  Candidate candidate{considered, *message, -1, ""};
  const auto last = log.last_of_entry.find(question.id);
  if (last != log.last_of_entry.end() && last->second->evidence_hash == candidate.message.evidence_hash) {
    considered.gate = "it was asked with the same evidence";
    return std::nullopt;
  }
  if (const auto at = log.last_of_category.find(question.category); at != log.last_of_category.end())
    candidate.category_last_asked = at->second;
  candidate.coin = base::sha256_hex(fmt::format("{} {} {}", state.seed, state.n_evaluations, question.id));
  return candidate;
}

/// All entries: those that may be asked, best first, and what was said of every entry that fires.
std::vector<Candidate> weigh_all(const Bank& bank, const SteeringState& state, const SelectionPolicy& policy,
                                 Selection& selection) {
  const Log log(state.asked, policy);
  const int step = present_step(state, policy);
  std::vector<Candidate> candidates;
  std::vector<Considered> held;
  for (const Question& question : bank.questions) {
    Considered considered{&question, question.trigger.evaluate(state.signals), Tier::kCourse, 0, "", {}};
    if (considered.fires != Truth::kTrue) {
      ++selection.n_not_firing;
      continue;
    }
    considered.tier = tier_of(question, state);
    considered.severity = question.trigger.severity(state.signals);
    considered.because = question.trigger.explain(state.signals);
    if (auto candidate = weigh(considered, state, policy, log, step)) {
      candidates.push_back(std::move(*candidate));
    } else {
      held.push_back(std::move(considered));
    }
  }
  std::sort(candidates.begin(), candidates.end(), goes_before);
  for (const Candidate& candidate : candidates) selection.considered.push_back(candidate.considered);
  selection.considered.insert(selection.considered.end(), held.begin(), held.end());
  return candidates;
}

}  // namespace

const char* tier_name(Tier tier) {
  switch (tier) {
    case Tier::kInvalidity:
      return "validity";
    case Tier::kClaim:
      return "claim";
    case Tier::kCourse:
      break;
  }
  return "course";
}

Selection select_question(const Bank& bank, const SteeringState& state, const SelectionPolicy& policy,
                          bool ignore_moment) {
  Selection selection;
  selection.moment_gate = ignore_moment ? "" : gate_on_moment(state, policy);
  const std::vector<Candidate> candidates = weigh_all(bank, state, policy, selection);
  if (!selection.moment_gate.empty()) return selection;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::string leaks = lint_message(candidates[i].message, state.names);
    if (!leaks.empty()) {
      selection.considered[i].gate = "the lint refused the filled text: " + leaks;
      continue;
    }
    selection.message = candidates[i].message;
    break;
  }
  return selection;
}

std::vector<Message> best_messages(const Bank& bank, const SteeringState& state, size_t count,
                                   const SelectionPolicy& policy) {
  Selection selection;
  std::vector<Message> messages;
  for (const Candidate& candidate : weigh_all(bank, state, policy, selection)) {
    if (messages.size() >= count) break;
    if (lint_message(candidate.message, state.names).empty()) messages.push_back(candidate.message);
  }
  return messages;
}

std::string Selection::explain() const {
  std::string text;
  if (!moment_gate.empty()) text += fmt::format("nothing is asked now: {}\n", moment_gate);
  for (const Considered& one : considered) {
    const bool is_chosen = message && message->log_id == one.question->id;
    text += fmt::format("{} {:<28} {:<19} {:<8} severity {:.2f}{}\n", is_chosen ? ">" : " ", one.question->id,
                        one.question->category, tier_name(one.tier), one.severity,
                        one.gate.empty() ? "" : "  held back: " + one.gate);
    for (const auto& part : one.because) text += "      " + part + "\n";
  }
  return text + fmt::format("{} entries do not fire\n", n_not_firing);
}

}  // namespace ks::steering
