#include "run/run_task.h"

#include <unistd.h>

#include <climits>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "base/table.h"
#include "evaluator/operators.h"
#include "run/asker.h"
#include "run/person.h"
#include "run/session.h"
#include "run/steps.h"

namespace ks::run {
namespace {

std::string candidate_name(const Task& task) {
  const base::fs::path path = base::fs::path(task.candidate).lexically_normal();
  return (path.filename().empty() ? path.parent_path().filename() : path.filename()).string();
}

/// Copies what a run starts from into its folder, so that later changes to the originals are no matter.
RunPaths begin_folder(const RunOptions& options, Task& task) {
  const RunPaths paths = make_run_folder(options.runs, task.name);
  copy_tree(task.candidate, paths.work() / candidate_name(task));
  base::write_file_atomically(paths.root / "origin", base::fs::absolute(options.task).string() + "\n");
  base::write_file_atomically(paths.task(), base::read_file(options.task));
  if (!options.questioner.empty()) base::write_file_atomically(paths.root / "questioner", options.questioner + "\n");
  return paths;
}

Task task_of_run(const RunPaths& paths) {
  std::string origin = base::read_file(paths.root / "origin");
  while (!origin.empty() && origin.back() == '\n') origin.pop_back();
  // The start was copied when the run began: the original may be gone.
  std::string text = base::read_file(paths.task());
  Task task = parse_task(text, paths.task().string(), base::fs::path(origin).parent_path());
  const auto questioner = paths.root / "questioner";
  if (base::fs::exists(questioner)) {
    task.questioner = base::read_file(questioner);
    while (!task.questioner.empty() && task.questioner.back() == '\n') task.questioner.pop_back();
  }
  return task;
}

void open_session(Session& session, const RunOptions& options, const Workbench& bench) {
  session.bench = &bench;
  if (options.resume.empty()) {
    session.task = read_task(options.task);
    if (!options.questioner.empty()) session.task.questioner = options.questioner;
    check_questioner(session.task);
    if (session.task.questioner == "human") check_person(options.person);
    session.paths = begin_folder(options, session.task);
  } else {
    session.paths = open_run_folder(options.resume);
  }
  // From here the folder is ours alone.
  session.lock = std::make_unique<RunLock>(session.paths);
  if (!options.resume.empty()) {
    session.task = task_of_run(session.paths);
    if (session.task.questioner == "human") check_person(options.person);
  }
  session.goal = std::make_unique<goal::Goal>(session.task.goal);
  session.trace = std::make_unique<trace::TraceWriter>(session.paths.trace(),
                                                       Json{{"run", session.paths.root.filename().string()}});
  const bool is_live = !options.is_quiet && options.out == stdout && base::is_interactive();
  session.progress = std::make_unique<Progress>(options.out, stderr, is_live, 0);
  session.context.folder = session.paths.work().string();
  session.context.candidate = candidate_name(session.task);
  session.context.task = session.task.instructions;
  session.context.goal = session.task.goal;
  session.context.seed = session.task.seed;
  restore_session(session);
  if (session.has_started && session.started_goal != session.task.goal)
    throw Error("{}: the goal is not the one that this run began with ({}); put it back", session.paths.task().string(),
                session.started_goal);
}

/// The hash of the grid's text, by which a later change of it is noticed.
std::string hash_of_grid(const Task& task) {
  return evaluator::load_grid(evaluator::find_operator(task.operator_name), task.grid).hash;
}

void start_or_resume(Session& session, const RunOptions& options) {
  session.began_ns = base::monotonic_ns();
  const Task& task = session.task;
  if (session.has_started) {
    session.record("note",
                   {{"what", "resumed"}, {"text", "the run goes on"}, {"torn", session.trace->torn_file().string()}},
                   true);
  } else {
    session.grid_hash = hash_of_grid(task);
    session.record("run_start",
                   {{"task", task.name},
                    {"operator", task.operator_name},
                    {"grid", task.grid},
                    {"grid_hash", session.grid_hash},
                    {"goal", task.goal},
                    {"questioner", task.questioner},
                    {"agent", task.agent},
                    {"model", task.model},
                    {"seed", task.seed},
                    {"baselines", task.baselines},
                    {"budget",
                     {{"minutes", task.budget.minutes},
                      {"evaluations", task.budget.evaluations},
                      {"tokens", task.budget.tokens},
                      {"cost_usd", task.budget.cost_usd},
                      {"gpu_seconds", task.budget.gpu_seconds}}}},
                   true);
    session.has_started = true;
  }
  session.versions = std::make_unique<Versions>(session.paths);
  session.control = std::make_unique<Control>(session.paths.control_socket());
  session.answers = std::make_unique<AnswerWatch>(session.paths.trace());
  session.questioner = task.questioner == "human" ? make_person(session, options.person)
                                                  : session.bench->make_questioner(task, session.paths);
  AgentSetup setup{task, session.paths, {}, {}};
  setup.sink = [&session](const std::string& kind, const std::string& name, const Json& body) {
    session.trace->append(kind, name, session.redactor.redact(body));
    take_usage(session, kind, body);
  };
  setup.should_stop = [&session] {
    return session.is_cancelled() || session.control->is_stopped() || session.left_s() <= 0 ||
           !model_budget_spent(session).empty();
  };
  session.agent = session.bench->make_agent(setup);
  if (base::fs::exists(session.paths.state()))
    session.agent->restore(
        base::value_or<Json>(base::read_json_file(session.paths.state().string()), "agent", Json::object()));
}

void wait_while_paused(Session& session) {
  constexpr auto kTurn = std::chrono::milliseconds(100);
  while (session.control->is_paused() && !session.control->is_stopped() && !session.is_cancelled()) {
    session.progress->show("paused | " + status_line(session));
    std::this_thread::sleep_for(kTurn);
  }
}

agents::AgentStep next_step(Session& session) {
  auto& context = session.context;
  context.minutes_left = session.left_s() / 60;
  const int limit = session.task.budget.evaluations;
  context.evaluations_left = limit > 0 ? limit - session.evaluations() : INT_MAX;
  session.progress->show(status_line(session));
  return session.agent->next(context);
}

/// One turn: the agent does something, and it is answered. True when the run is over.
bool take_turn(Session& session) {
  wait_while_paused(session);
  take_human_messages(session);
  const auto step = run_stage(session, "agent", [&] { return next_step(session); });
  switch (step.kind) {
    case agents::AgentStep::Kind::kEvaluate: {
      run_stage(session, "evaluate", [&] { evaluate_version(session, step); });
      const auto asked = run_stage(session, "ask", [&] { return ask_question(session, false); });
      if (asked) send_question(session, *asked);
      return false;
    }
    case agents::AgentStep::Kind::kClaim: {
      const bool is_met = run_stage(session, "judge", [&] { return answer_claim(session, step); });
      if (is_met) session.end_reason = "goal met";
      return is_met || !session.end_reason.empty();
    }
    case agents::AgentStep::Kind::kAsk: {
      session.context.new_messages = 0;
      const auto asked = run_stage(session, "ask", [&] { return ask_question(session, false); });
      if (asked) send_question(session, *asked);
      return false;
    }
    case agents::AgentStep::Kind::kWorked:
      return false;
    case agents::AgentStep::Kind::kStop:
      session.end_reason = budget_spent(session);
      if (session.end_reason.empty()) session.end_reason = "the agent stopped: " + step.text;
      return true;
  }
  return true;
}

/// The last judgement, on what lies there now; not needed where the goal was just met.
void final_judgement(Session& session) {
  if (session.end_decision == "met") return;
  session.agent->finish(session.context);
  const auto known = known_judgement(session);
  const auto judgement = known ? *known : run_stage(session, "judge", [&] { return judge_now(session); });
  if (session.is_cancelled()) throw Cancelled{};
  session.end_decision = goal::decision_name(judgement.decision);
  record_judgement(session, judgement, !known, "");
  session.progress->say(fmt::format("   =  {}", fmt::join(judgement.figures, "; ")));
}

RunResult result_of(const Session& session, const std::string& reason) {
  RunResult result{session.paths.root.string(), session.end_decision, reason, session.evaluations(), 0, session.best};
  for (const auto& figures : session.context.history)
    if (result.first == 0) result.first = figures.geomean;
  return result;
}

}  // namespace

RunResult run_task(const RunOptions& options, const Workbench& bench) {
  // Either a new folder with a copy of the start, or an old one with all that happened in it.
  Session session;
  session.cancel = options.cancel;
  open_session(session, options, bench);
  if (session.has_ended) return result_of(session, session.end_reason);

  // From here everything that happens is in the trace, and a kill at any moment loses nothing of it.
  start_or_resume(session, options);
  session.progress->say(fmt::format("run {}: {} on {}, {} asks {}, goal {}", session.paths.root.string(),
                                    session.task.operator_name, session.task.grid, session.task.questioner,
                                    session.task.agent, session.task.goal));
  if (options.on_started) options.on_started(session.paths.root.string());
  try {
    // What the agent starts from is evaluation 1, whoever the agent is.
    if (session.context.history.empty())
      run_stage(session, "evaluate", [&] { evaluate_version(session, session.agent->begin(session.context)); });

    // The agent works, is evaluated, asked and refused, until the judge is content or the budget is spent.
    bool is_over = false;
    while (!is_over) {
      session.end_reason = budget_spent(session);
      is_over = !session.end_reason.empty() || take_turn(session);
      write_state(session);
    }

    // What became of the last questions is known now.
    record_answers(session, true);

    // The decision is the judge's, on the files as they lie at the end.
    final_judgement(session);
  } catch (const Cancelled&) {
    session.record("note", {{"what", "cancelled"}, {"text", "interrupted"}}, true);
    write_state(session);
    return result_of(session, "cancelled");
  }
  session.record("run_end", {{"reason", session.end_reason}, {"decision", session.end_decision}}, true);
  session.has_ended = true;
  write_state(session);
  return result_of(session, session.end_reason);
}

std::string describe_run(const RunOptions& options) {
  Task task = read_task(options.task);
  if (!options.questioner.empty()) task.questioner = options.questioner;
  check_questioner(task);
  const auto the_operator = evaluator::find_operator(task.operator_name);
  const auto grid = evaluator::load_grid(the_operator, task.grid);
  const auto scenarios = task.filter.empty() ? grid.scenarios : core::filter_scenarios(grid, task.filter);
  std::string text = fmt::format("task        {} ({})\noperator    {}\ngrid        {}: {} scenarios\ncandidate   {}\n",
                                 task.name, task.path, the_operator.name, grid.path, scenarios.size(), task.candidate);
  text += fmt::format("goal        {}, judged on that grid and on {} hidden scenarios\n", task.goal,
                      std::min<size_t>(static_cast<size_t>(task.hidden_scenarios), scenarios.size()));
  text += fmt::format("agent       {}{}\nquestioner  {}\n", task.agent,
                      task.model.empty() ? "" : " (" + task.model + ")", task.questioner);
  text += fmt::format("baselines   {}\n", task.baselines.empty() ? "every installed one"
                                                                 : fmt::format("{}", fmt::join(task.baselines, ", ")));
  text += fmt::format(
      "budget      {}, {}\nfolder      {}/{}-<n>\nNothing was run.\n",
      task.budget.minutes > 0 ? fmt::format("{:g} minutes", task.budget.minutes) : "no limit of time",
      task.budget.evaluations > 0 ? fmt::format("{} evaluations", task.budget.evaluations) : "no limit of evaluations",
      options.runs, task.name);
  return text;
}

}  // namespace ks::run
