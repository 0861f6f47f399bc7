// What a run needs of an agent, whoever it is: the tuner, a program such as Codex, an HTTP model, a script in a test. A
// run calls next() with what is new; the agent works in its folder and comes back when it wants something from the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace ks::agents {

/// One scenario of an evaluation, as an agent is told.
struct ScenarioFigures {
  std::string name;     ///< "category/name"
  std::string verdict;  ///< "correct", "wrong", …
  double time_us = 0;   ///< 0: not timed
  double ratio = 0;     ///< against the fastest baseline; 0: none
};

/// One evaluation of the run, in order.
struct EvaluationFigures {
  int number = 0;
  std::string outcome;  ///< "judged", "build_failed", …
  std::string reason;
  double geomean = 0;  ///< against the fastest; 0: undefined
  double aa_p95 = 0;   ///< |log ratio| of a binary against itself; 0: not measured
  int correct = 0, total = 0;
  std::vector<ScenarioFigures> scenarios;
  Json memo;  ///< what the agent said about this version when it asked for the evaluation
};

/// A message to the agent.
struct AgentMessage {
  std::string text;
  std::string focus;        ///< scenario that its evidence names; empty: none
  bool is_refusal = false;  ///< the judge's answer to a claim
};

/// What an agent knows when it is asked what it does next.
struct AgentContext {
  std::string folder;     ///< where it works
  std::string candidate;  ///< file or folder that is judged, relative to `folder`
  std::string task;       ///< what is asked of it, in words
  std::string goal;       ///< the goal expression
  uint64_t seed = 0;
  double minutes_left = 1e9;
  int evaluations_left = 1 << 30;
  std::string goal_state;                  ///< of the last evaluation: "met", "not_met", "undecided", ""
  std::vector<EvaluationFigures> history;  ///< every evaluation so far
  std::string last_table;                  ///< the last evaluation as people read it
  std::vector<AgentMessage> messages;      ///< every message so far
  size_t new_messages = 0;                 ///< how many of them, from the end, it has not seen
};

/// What an agent wants.
struct AgentStep {
  enum class Kind {
    kEvaluate,  ///< judge the candidate as it lies in the folder now
    kClaim,     ///< it says that something holds ("the goal is reached", "nothing more is possible")
    kAsk,       ///< it wants a question
    kWorked,    ///< it did something that the trace should hold; ask again
    kStop       ///< it will do nothing more
  };
  Kind kind = Kind::kStop;
  std::string text;                 ///< what it says
  std::vector<std::string> claims;  ///< "done", "goal_reached", "limit"
  std::string filter;               ///< evaluate: only these scenarios (regular expression); empty: all
  bool check_only = false;
  Json memo;  ///< evaluate: given back with the figures
};

const char* step_name(AgentStep::Kind kind);

/// An agent at work. next() may take as long as the agent works; stop() may be called from another thread and makes
/// next() return soon. Errors that end the agent are ks::Error.
class Agent {
 public:
  virtual ~Agent() = default;
  virtual std::string name() const = 0;
  virtual AgentStep next(const AgentContext& context) = 0;
  virtual void stop() {}
  /// The evaluation of what the agent starts from, before it has done anything; its memo is the agent's.
  virtual AgentStep begin(const AgentContext& /*context*/) { return {AgentStep::Kind::kEvaluate, "where it starts"}; }
  /// The run is over: the last chance to leave the files as they shall be judged.
  virtual void finish(const AgentContext& /*context*/) {}
  /// What must be kept to go on after a crash (the session's id), and where it is given back.
  virtual Json state() const { return Json::object(); }
  virtual void restore(const Json& /*state*/) {}
};

Json to_json(const AgentContext& context);
AgentContext context_from_json(const Json& json);
Json to_json(const AgentStep& step);
AgentStep step_from_json(const Json& json);

}  // namespace ks::agents
