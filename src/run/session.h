// A run in progress: what run_task.cc's steps share. The trace and the records are the truth; a session is rebuilt from
// them after a crash (restore_session), so nothing but the agent's own state is kept besides.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "agents/redact.h"
#include "base/clock.h"
#include "goal/goal.h"
#include "run/answers.h"
#include "run/control.h"
#include "run/progress.h"
#include "run/versions.h"
#include "run/workbench.h"
#include "trace/trace_writer.h"

namespace ks::run {

struct Session {
  Task task;
  RunPaths paths;
  const Workbench* bench = nullptr;
  const std::atomic<bool>* cancel = nullptr;
  std::unique_ptr<RunLock> lock;
  std::unique_ptr<trace::TraceWriter> trace;
  std::unique_ptr<Versions> versions;
  std::unique_ptr<goal::Goal> goal;
  std::unique_ptr<agents::Agent> agent;
  std::unique_ptr<Control> control;
  std::unique_ptr<Progress> progress;
  agents::Redactor redactor;
  Questioner questioner;
  std::unique_ptr<AnswerWatch> answers;

  agents::AgentContext context;      ///< history and messages
  std::string grid_hash;             ///< of the goal's grid when the run began
  std::string started_goal;          ///< the goal that the run began with
  std::string evaluated_hash;        ///< content_hash of what the last whole evaluation judged
  std::vector<std::string> figures;  ///< the goal's comparisons on it
  double best = 0;                   ///< geomean against the fastest, of those right on most scenarios; 0: none
  int best_correct = 0;              ///< on how many
  double last_evaluation_s = 0;
  double used_before_s = 0;  ///< by earlier processes of this run
  int64_t began_ns = 0;
  int judgements = 0;
  std::string refused_hash;  ///< content_hash of what the judge last saw afresh and did not find to meet the goal
  int idle_claims = 0;       ///< claims in a row without an evaluation between them
  std::string last_question;
  std::map<std::string, std::pair<int64_t, double>> usage;  ///< tokens and cost by the id of usage events
  int64_t tokens = 0;
  double cost_usd = 0, gpu_seconds = 0;
  bool has_started = false, has_ended = false;
  std::string end_reason, end_decision;

  /// Seconds of the run so far, over all its processes.
  double used_s() const;
  double left_s() const;  ///< 1e18 without a limit
  int evaluations() const { return context.history.empty() ? 0 : context.history.back().number; }
  bool is_cancelled() const { return cancel != nullptr && cancel->load(); }
  void record(const std::string& kind, const Json& body, bool durable = false);
};

/// Thrown by run_stage where the run was cancelled; run_task catches it.
struct Cancelled {};

/// Puts one stage of the run through the same door: not begun after a cancel, timed, recorded.
template <typename Stage>
auto run_stage(Session& session, const char* name, Stage stage) {
  if (session.is_cancelled()) throw Cancelled{};
  struct Timer {
    Session& session;
    const char* name;
    int64_t start = base::monotonic_ns();
    ~Timer() {
      const double seconds = static_cast<double>(base::monotonic_ns() - start) * 1e-9;
      try {
        session.record("stage", {{"name", name}, {"seconds", seconds}});
      } catch (const Error&) {
        // The disk is full, say; the error that is on its way, or the next write, says so.
      }
    }
  } timer{session, name};
  return stage();
}

/// How an evaluation is told to an agent.
agents::EvaluationFigures figures_of(const core::Evaluation& evaluation, int number, const Json& memo);

/// Rebuilds history, messages and sums from the trace and the records; takes in a record that was written but not yet
/// named in the trace when the process died.
void restore_session(Session& session);

/// Adds an evaluation to what the session knows.
void take_evaluation(Session& session, const core::Evaluation& evaluation, int number, const Json& memo,
                     bool is_partial);

/// Adds an event of the agent's to the sums of tokens and cost, if it is one of usage. The last of one id counts.
void take_usage(Session& session, const std::string& kind, const Json& body);

/// Rewrites told/facts.json and state.json.
void write_state(const Session& session);

}  // namespace ks::run
