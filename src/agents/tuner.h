// The embedded agent: a deterministic local search over the constants that the candidate offers (tune_points.h). It
// reads no code, invents none, and says so. What it does next is a function of the evaluations so far, the messages so
// far and the seed alone, so it goes on after a crash as if nothing had been.
//
// Its attention follows the question it was asked last: where the question's evidence names a scenario, that
// scenario's time is what it ranks versions and edits by (a version must not lose more than noise over all scenarios);
// else the geometric mean over all. Asked nothing new, it goes on as before.
//
//   best version so far under this objective -> untried neighbours (one constant, one step) in the order of what moved
//   the objective before, then of the seed -> evaluate -> …; none untried:
//   "done", and after a refusal two constants at once, then anything untried in the order of the seed.
#pragma once

#include "agents/agent.h"
#include "agents/tune_points.h"

namespace ks::agents {

/// What the tuner decided; applied to the files by Tuner, pure for tests.
struct TunerPlan {
  AgentStep step;
  Settings settings;      ///< what the candidate's files shall hold when the step is made
  std::string objective;  ///< scenario in focus, or "" for all
};

/// Decides from the context and the candidate's tune points (their `value` is not looked at where history has it).
TunerPlan plan_next(const AgentContext& context, const std::vector<TunePoint>& points);

/// The search as an agent on files.
class Tuner : public Agent {
 public:
  std::string name() const override { return "tuner"; }
  AgentStep next(const AgentContext& context) override;
  AgentStep begin(const AgentContext& context) override { return next(context); }
  void finish(const AgentContext& context) override;
};

/// Serves an agent over a channel in JSON lines: a context in, a step out, until the other side closes.
void serve_agent(Agent& agent, int fd);

}  // namespace ks::agents
