#include "run/steps.h"

#include <cmath>

#include "judge/facts.h"

namespace ks::run {
namespace {

constexpr int kMostIdleClaims = 3;
constexpr double kJudgeShare = 1.3;  ///< time kept for the judge, in units of the last evaluation's

/// The request for the version in snapshot/.
evaluator::Request request_for(const Session& session) {
  const Task& task = session.task;
  evaluator::Request request;
  request.candidate = (session.paths.snapshot() / session.context.candidate).string();
  request.operator_name = task.operator_name;
  request.grid = task.grid;
  request.filter = task.filter;
  request.device = task.device;
  request.baselines = task.baselines;
  request.threads = task.threads;
  request.cancel = session.cancel;
  return request;
}

void record_edits(Session& session, const Version& version, const agents::AgentStep& step, int number) {
  for (const auto& change : version.changes)
    session.record("edit", {{"file", change.file},
                            {"hash", version.commit},
                            {"lines_added", change.lines_added},
                            {"lines_removed", change.lines_removed},
                            {"params_only", version.params_only},
                            {"summary", step.text},
                            {"evaluation", number}});
  for (const auto& name : version.left_out)
    session.record("note",
                   {{"text", fmt::format("{} is a link or too large: it is not part of what is judged", name)}});
}

std::string ratio_text(double ratio) {
  return ratio > 0 ? fmt::format("{:.3f}x", ratio) : std::string("   -  ");
}

void say_evaluation(Session& session, const agents::EvaluationFigures& figures, const std::string& what) {
  session.progress->say(fmt::format("{:4}  {}  {}/{} right  best {}  {} left  {}", figures.number,
                                    ratio_text(figures.geomean), figures.correct, figures.total,
                                    ratio_text(session.best), clock_text(session.left_s()),
                                    figures.outcome == "judged" ? what : figures.outcome + ": " + figures.reason));
}

}  // namespace

std::string status_line(const Session& session) {
  const auto limit = session.task.budget.evaluations;
  return fmt::format("eval {}{} | best {} | {} left{}", session.evaluations(),
                     limit > 0 ? fmt::format("/{}", limit) : "",
                     session.best > 0 ? fmt::format("{:.3f}x", session.best) : "-", clock_text(session.left_s()),
                     session.last_question.empty() ? "" : " | asked " + session.last_question);
}

std::string model_budget_spent(const Session& session) {
  const Budget& budget = session.task.budget;
  if (budget.tokens > 0 && session.tokens >= budget.tokens) return "tokens";
  return budget.cost_usd > 0 && session.cost_usd >= budget.cost_usd ? "cost" : "";
}

std::string budget_spent(const Session& session) {
  const Budget& budget = session.task.budget;
  if (session.control && session.control->is_stopped()) return "stopped by a person";
  if (budget.evaluations > 0 && session.evaluations() >= budget.evaluations) return "evaluations";
  if (budget.gpu_seconds > 0 && session.gpu_seconds >= budget.gpu_seconds) return "gpu_seconds";
  if (const std::string spent = model_budget_spent(session); !spent.empty()) return spent;
  // One more evaluation and the judge's must fit.
  if (session.left_s() < session.last_evaluation_s * (1 + kJudgeShare)) return "minutes";
  return "";
}

void send_message(Session& session, const std::string& source, const agents::AgentMessage& message,
                  const std::string& question) {
  Json body = {{"role", source == "human" ? "human" : "system"},
               {"source", source},
               {"text", message.text},
               {"focus", message.focus},
               {"is_refusal", message.is_refusal}};
  if (!question.empty()) body["question"] = question;
  session.record("message", body, true);
  session.context.messages.push_back(message);
  ++session.context.new_messages;
}

void evaluate_version(Session& session, const agents::AgentStep& step) {
  const int number = session.evaluations() + 1;
  const bool is_partial = !step.filter.empty() || step.check_only;
  session.idle_claims = 0;
  session.context.new_messages = 0;
  session.record(
      "note", {{"what", "evaluation_requested"}, {"evaluation", number}, {"partial", is_partial}, {"memo", step.memo}});
  // What is judged is a copy that the agent cannot reach, and the copy is what is kept.
  const Version version = session.versions->keep(number, step.text);
  record_edits(session, version, step, number);
  evaluator::Request request = request_for(session);
  if (!step.filter.empty()) request.filter = step.filter;
  request.check_only = step.check_only;
  request.time_budget_s = session.task.evaluation_seconds;
  request.progress = [&](const evaluator::Progress& progress) {
    session.progress->show(fmt::format("{} | {} {}/{} {}", status_line(session), progress.stage, progress.index + 1,
                                       progress.total, progress.scenario));
  };
  core::Evaluation evaluation = session.bench->evaluate(request);
  if (session.is_cancelled()) throw Cancelled{};  // half an evaluation is none
  evaluation.candidate_path = session.context.candidate;
  // First the record, then the event that names it: a kill between the two loses neither (restore_session).
  core::write_evaluation(evaluation, session.paths.record(number));
  const std::string hash = judge::content_hash(session.paths.snapshot() / session.context.candidate);
  take_evaluation(session, evaluation, number, step.memo, is_partial);
  constexpr size_t kAgentColumns = 120;
  session.context.last_table = evaluator::evaluation_table(evaluation, kAgentColumns);
  if (!is_partial) session.evaluated_hash = hash, session.refused_hash.clear();
  const auto& figures = session.context.history.back();
  session.record("evaluation",
                 {{"number", number},
                  {"record", fmt::format("evaluations/{:04}.json", number)},
                  {"outcome", evaluation.outcome},
                  {"geomean", figures.geomean > 0 ? Json(figures.geomean) : Json()},
                  {"correct", figures.correct},
                  {"total", figures.total},
                  {"candidate_hash", evaluation.candidate_hash},
                  {"content_hash", is_partial ? session.evaluated_hash : hash},
                  {"commit", version.commit},
                  {"partial", is_partial},
                  {"memo", step.memo}},
                 true);
  write_state(session);
  say_evaluation(session, figures, step.text);
}

void send_question(Session& session, const Asked& asked) {
  const bool is_person = session.task.questioner == "human";
  send_message(session, is_person ? "human" : "questioner", {asked.text, asked.focus, false}, asked.id);
}

void record_answers(Session& session, bool is_end) {
  for (const Json& body : session.answers->due(is_end)) session.record("answer", body);
}

std::optional<Asked> ask_question(Session& session, bool stop_requested) {
  // First what became of earlier questions: a choice depends on it.
  record_answers(session, false);
  if (!session.questioner) return std::nullopt;
  auto asked = session.questioner(
      {stop_requested, session.evaluations(), [&](const Json& note) { session.record("note", note); }});
  if (!asked) return asked;
  Json body = {{"id", asked->id},       {"category", asked->category},           {"text", asked->text},
               {"facts", asked->facts}, {"questioner", session.task.questioner}, {"evaluation", session.evaluations()},
               {"focus", asked->focus}};
  if (!asked->log.is_null()) body["log"] = asked->log;
  body.update(asked->more);
  session.record("question", body, true);
  session.last_question = asked->id;
  session.progress->say(
      fmt::format("   ?  [{}] {}", asked->id, asked->question.empty() ? asked->text : asked->question));
  return asked;
}

void take_human_messages(Session& session) {
  if (session.task.questioner == "human") return;  // what a person types is a question then, at its time
  for (const auto& text : session.control->take_messages())
    send_message(session, "human", {session.redactor.redact(text), "", false});
}

judge::Judgement judge_now(Session& session) {
  ++session.judgements;
  session.progress->show(status_line(session) + " | judging");
  judge::Case the_case;
  the_case.goal = session.task.goal;
  the_case.request = request_for(session);
  the_case.request.candidate = (session.paths.snapshot() / session.context.candidate).string();
  the_case.request.time_budget_s = session.task.judge_seconds;
  the_case.request.progress = [&](const evaluator::Progress& progress) {
    session.progress->show(
        fmt::format("{} | judging {} {}/{}", status_line(session), progress.stage, progress.index + 1, progress.total));
  };
  the_case.grid_hash = session.grid_hash;
  the_case.folder = session.paths.judge();
  the_case.hidden_scenarios = session.task.hidden_scenarios;
  the_case.number = session.judgements;
  base::fs::remove_all(session.paths.snapshot());
  copy_tree(session.paths.work(), session.paths.snapshot());
  return judge::judge(the_case, session.bench->evaluate);
}

void record_judgement(Session& session, const judge::Judgement& judgement, bool is_fresh, const std::string& question) {
  // Afresh, what was judged is the copy.
  const std::string hash =
      judge::content_hash((is_fresh ? session.paths.snapshot() : session.paths.work()) / session.context.candidate);
  if (is_fresh && judgement.decision != goal::Decision::kMet) {
    session.refused_hash = session.evaluated_hash = hash;
    session.figures = judgement.figures;
    session.context.goal_state = goal::decision_name(judgement.decision);
  }
  session.record("judge",
                 {{"decision", goal::decision_name(judgement.decision)},
                  {"goal", session.task.goal},
                  {"figures", judgement.figures},
                  {"reason", judgement.reason},
                  {"question", question},
                  {"fresh", is_fresh},
                  {"content_hash", hash},
                  {"record", judgement.record}},
                 true);
}

std::optional<judge::Judgement> known_judgement(const Session& session) {
  if (session.refused_hash.empty() ||
      judge::content_hash(session.paths.work() / session.context.candidate) != session.refused_hash)
    return std::nullopt;
  judge::Judgement known;
  known.decision = session.context.goal_state == "undecided" ? goal::Decision::kUndecided : goal::Decision::kNotMet;
  known.figures = session.figures;
  return known;
}

namespace {

void refuse(Session& session, const judge::Judgement& judgement, bool is_fresh) {
  const auto asked = ask_question(session, true);
  record_judgement(session, judgement, is_fresh, asked ? asked->id : "");
  send_message(
      session, "judge",
      {judge::refusal_text(judgement, session.task.goal, asked ? asked->text : ""), asked ? asked->focus : "", true},
      asked ? asked->id : "");
  session.progress->say(
      fmt::format("   x  not yet: {}", judgement.figures.empty() ? judgement.reason : judgement.figures.front()));
}

}  // namespace

bool answer_claim(Session& session, const agents::AgentStep& step) {
  session.record("claim", {{"text", step.text}, {"claims", step.claims}, {"evaluation", session.evaluations()}}, true);
  session.context.new_messages = 0;
  session.progress->say(fmt::format("   !  {}: {}", session.agent->name(), step.text));
  if (++session.idle_claims > kMostIdleClaims) {
    session.end_reason = "the agent has nothing more to try";
    return false;
  }
  if (const auto known = known_judgement(session)) {
    refuse(session, *known, false);
    return false;
  }
  const bool is_known = !session.evaluated_hash.empty() && session.context.goal_state != "met" &&
                        judge::content_hash(session.paths.work() / session.context.candidate) == session.evaluated_hash;
  if (is_known) {
    judge::Judgement known;
    known.decision = session.context.goal_state == "undecided" ? goal::Decision::kUndecided : goal::Decision::kNotMet;
    known.figures = session.figures;
    known.record = fmt::format("evaluations/{:04}.json", session.evaluations());
    refuse(session, known, false);
    return false;
  }
  const auto judgement = judge_now(session);
  if (session.is_cancelled()) throw Cancelled{};
  if (judgement.decision != goal::Decision::kMet) {
    refuse(session, judgement, true);
    return false;
  }
  record_judgement(session, judgement, true, "");
  session.end_decision = "met";
  return true;
}

}  // namespace ks::run
