#include "run/session.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "judge/facts.h"
#include "trace/trace_reader.h"

namespace ks::run {
namespace {

double at_or_zero(const std::map<std::string, std::optional<double>>& figures, const char* name) {
  const auto found = figures.find(name);
  return found == figures.end() ? 0 : found->second.value_or(0);
}

/// What was asked for before an evaluation began: its memo, and whether it covers the whole grid.
struct Requested {
  Json memo;
  bool is_partial = false;
};

/// Rebuilds a session event by event.
class Restorer {
 public:
  explicit Restorer(Session& session) : session_(session) {}

  void take(const trace::Event& event) {
    keep_time(event);
    const Json& body = event.body;
    if (event.kind == "note" && body.value("what", "") == "evaluation_requested")
      requested_[body.value("evaluation", 0)] = {body.value("memo", Json()), body.value("partial", false)};
    if (event.kind == "evaluation") evaluation(body);
    if (event.kind == "message") message(body);
    take_usage(session_, event.kind, body);
    if (event.kind == "question") session_.last_question = body.value("id", "");
    if (event.kind == "claim") {
      session_.context.new_messages = 0;
      ++session_.idle_claims;
    }
    if (event.kind == "judge") {
      ++session_.judgements;
      if (body.value("fresh", false) && body.value("decision", "") != "met") {
        session_.refused_hash = session_.evaluated_hash = body.value("content_hash", "");
        session_.figures = base::value_or<std::vector<std::string>>(body, "figures", {});
        session_.context.goal_state = body.value("decision", "");
      }
    }
    if (event.kind == "run_start") {
      session_.has_started = true;
      session_.grid_hash = body.value("grid_hash", "");
      session_.started_goal = body.value("goal", "");
    }
    if (event.kind == "run_end") {
      session_.has_ended = true;
      session_.end_reason = body.value("reason", "");
      session_.end_decision = body.value("decision", "");
    }
  }

  /// A record that lies in the folder without an event: the process died between the two.
  void take_in_records() {
    session_.used_before_s += last_time_ - segment_start_;
    for (int number = session_.evaluations() + 1; base::fs::exists(session_.paths.record(number)); ++number) {
      const auto evaluation = core::read_evaluation(session_.paths.record(number));
      const Requested requested = requested_[number];
      take_evaluation(session_, evaluation, number, requested.memo, requested.is_partial);
      Json body = {{"number", number},
                   {"record", fmt::format("evaluations/{:04}.json", number)},
                   {"outcome", evaluation.outcome},
                   {"geomean", nullptr},
                   {"correct", evaluation.summary.correct},
                   {"total", evaluation.summary.total},
                   {"candidate_hash", evaluation.candidate_hash},
                   {"partial", requested.is_partial},
                   {"memo", requested.memo},
                   {"adopted", true}};
      if (const double geomean = session_.context.history.back().geomean; geomean > 0) body["geomean"] = geomean;
      session_.record("evaluation", body, true);
    }
  }

 private:
  /// Time counts from each process's start of work to its last event.
  void keep_time(const trace::Event& event) {
    const bool is_start = event.kind == "run_start" || event.body.value("what", "") == "resumed";
    if (is_start) {
      session_.used_before_s += last_time_ - segment_start_;
      segment_start_ = event.time;
    }
    last_time_ = std::max(event.time, segment_start_);
  }

  void evaluation(const Json& body) {
    const int number = body.value("number", 0);
    const auto path = session_.paths.record(number);
    take_evaluation(session_, core::read_evaluation(path), number, body.value("memo", Json()),
                    body.value("partial", false));
    session_.evaluated_hash = body.value("content_hash", "");
    if (!body.value("partial", false)) session_.refused_hash.clear();
    session_.context.new_messages = 0;
    session_.idle_claims = 0;
  }

  void message(const Json& body) {
    if (body.value("role", "") == "agent" || body.value("source", "") == "prompt") return;
    session_.context.messages.push_back(
        {body.value("text", ""), body.value("focus", ""), body.value("is_refusal", false)});
    ++session_.context.new_messages;
  }

  Session& session_;
  std::map<int, Requested> requested_;
  double segment_start_ = 0, last_time_ = 0;
};

}  // namespace

double Session::used_s() const {
  return used_before_s + (began_ns == 0 ? 0 : static_cast<double>(base::monotonic_ns() - began_ns) * 1e-9);
}

double Session::left_s() const {
  return task.budget.minutes > 0 ? task.budget.minutes * 60 - used_s() : 1e18;
}

void Session::record(const std::string& kind, const Json& body, bool durable) {
  trace->append(kind, "main", redactor.redact(body), durable);
}

agents::EvaluationFigures figures_of(const core::Evaluation& evaluation, int number, const Json& memo) {
  agents::EvaluationFigures figures;
  figures.number = number;
  figures.outcome = evaluation.outcome;
  figures.reason = evaluation.outcome_reason;
  figures.geomean = at_or_zero(evaluation.summary.geomean, "fastest");
  figures.aa_p95 = evaluation.summary.aa_p95.value_or(0);
  figures.correct = evaluation.summary.correct;
  figures.total = evaluation.summary.total;
  for (const auto& result : evaluation.scenarios) {
    const auto ratio = result.ratio.find("fastest");
    figures.scenarios.push_back({result.category + "/" + result.name, core::verdict_name(result.candidate.verdict),
                                 result.candidate.time_us.value_or(0),
                                 ratio == result.ratio.end() ? 0 : ratio->second.value});
  }
  figures.memo = memo;
  return figures;
}

void take_evaluation(Session& session, const core::Evaluation& evaluation, int number, const Json& memo,
                     bool is_partial) {
  session.last_evaluation_s = is_partial ? session.last_evaluation_s : evaluation.wall_s;
  if (session.task.device == "cuda") session.gpu_seconds += evaluation.wall_s;
  session.context.history.push_back(figures_of(evaluation, number, memo));
  auto& figures = session.context.history.back();
  if (is_partial) {
    // A part of the grid says nothing about the goal, and would mislead a comparison of versions.
    figures.memo = Json();
    return;
  }
  const goal::Figures values = goal::figures_of(evaluation.summary);
  const auto decision = evaluation.outcome == "judged" ? session.goal->decide(values) : goal::Decision::kNotMet;
  session.context.goal_state = goal::decision_name(decision);
  session.figures = session.goal->explain(values);
  // A figure over fewer scenarios is no better one.
  if (figures.correct > session.best_correct) session.best = 0;
  session.best_correct = std::max(session.best_correct, figures.correct);
  if (figures.correct == session.best_correct) session.best = std::max(session.best, figures.geomean);
}

void take_usage(Session& session, const std::string& kind, const Json& body) {
  if (kind != "usage") return;
  const auto id = base::value_or<std::string>(body, "id", "");
  const int64_t tokens =
      base::value_or<int64_t>(body, "input_tokens", 0) + base::value_or<int64_t>(body, "output_tokens", 0);
  const double cost = base::value_or(body, "cost_usd", 0.0);
  auto& known = session.usage[id.empty() ? "#" + std::to_string(session.usage.size()) : id];
  session.tokens += tokens - known.first;
  session.cost_usd += cost - known.second;
  known = {tokens, cost};
}

void restore_session(Session& session) {
  Restorer restorer(session);
  trace::TraceReader reader(session.paths.trace());
  while (const auto event = reader.next()) restorer.take(*event);
  if (session.has_started) restorer.take_in_records();
}

void write_state(const Session& session) {
  judge::Facts facts;
  facts.goal = session.task.goal;
  facts.goal_state = session.context.goal_state;
  facts.evaluation = session.evaluations();
  facts.evaluated_hash = session.evaluated_hash;
  facts.figures = session.figures;
  if (!session.context.messages.empty()) facts.question = session.context.messages.back().text;
  facts.candidate = (session.paths.work() / session.context.candidate).string();
  base::write_file_atomically(session.paths.told() / "facts.json", base::to_line(judge::to_json(facts)) + "\n");
  const Json state = {{"schema", "kernelseek.run/1"},
                      {"status", session.has_ended ? "ended" : "running"},
                      {"evaluations", session.evaluations()},
                      {"best", session.best > 0 ? Json(session.best) : Json()},
                      {"goal_state", session.context.goal_state},
                      {"seconds_used", session.used_s()},
                      {"tokens", session.tokens},
                      {"cost_usd", session.cost_usd},
                      {"gpu_seconds", session.gpu_seconds},
                      {"end_reason", session.end_reason},
                      {"decision", session.end_decision},
                      {"agent", session.agent ? session.agent->state() : Json::object()}};
  base::write_file_atomically(session.paths.state(), state.dump(1) + "\n");
  if (session.control) session.control->set_status(state);
}

}  // namespace ks::run
