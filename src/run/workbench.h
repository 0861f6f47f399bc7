// What a run works with, handed in: the evaluator, the agent, the questioner. Tests hand in fakes, and a whole run
// takes milliseconds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agents/agent.h"
#include "judge/judge.h"
#include "run/run_folder.h"
#include "run/task.h"

namespace ks::run {

/// A question that was chosen, ready to be sent.
struct Asked {
  std::string id, category;
  std::string question;  ///< the question alone
  std::string text;      ///< the whole message: facts, then the question
  Json facts = Json::array();
  std::string focus;           ///< scenario that the evidence names; "" none
  Json log = Json();           ///< what selection must find again in the trace; null: nothing
  Json more = Json::object();  ///< further keys of the `question` event
};

/// When the questioner is consulted.
struct Moment {
  bool stop_requested = false;  ///< the agent claims that it is done
  int evaluations = 0;
  std::function<void(const Json&)> note;  ///< records what else there is to say of the choice
};

/// Chooses a question for this moment, or none.
using Questioner = std::function<std::optional<Asked>(const Moment&)>;

/// Writes an event of the agent's into the trace.
using EventSink = std::function<void(const std::string& kind, const std::string& session, const Json& body)>;

/// What an agent is made of.
struct AgentSetup {
  Task task;
  RunPaths paths;
  EventSink sink;
  std::function<bool()> should_stop;  ///< a person, Ctrl-C or the clock wants the agent to end its turn
};

struct Workbench {
  judge::Evaluate evaluate;
  std::function<std::unique_ptr<agents::Agent>(const AgentSetup&)> make_agent;
  std::function<Questioner(const Task&, const RunPaths&)> make_questioner;
};

/// The real things: the evaluator of this process, the agents that data/agents/ describes, the bank.
Workbench real_workbench();

}  // namespace ks::run
