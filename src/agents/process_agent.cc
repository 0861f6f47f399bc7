#include "agents/process_agent.h"

namespace ks::agents {

AgentStep ProcessAgent::next(const AgentContext& context) {
  constexpr int kStarts = 3;
  std::string end = "it does not answer";
  for (int start = 0; start < kStarts && !stopping_; ++start) {
    if (!child_) child_ = std::make_unique<base::Child>(options_);
    if (child_->channel().send(to_json(context))) {
      while (!stopping_) {
        const auto answer = child_->channel().receive(0.2);
        if (answer) {
          if (answer->body.contains("error"))
            throw Error("agent {}: {}", name_, base::require<std::string>(answer->body, "error", "the agent's answer"));
          return step_from_json(answer->body);
        }
        if (child_->channel().closed()) break;
      }
    }
    end = base::describe_exit(child_->kill());
    child_.reset();
  }
  if (stopping_) return {AgentStep::Kind::kStop, "stopped"};
  throw Error("agent {}: its process ended {} times in a row ({})", name_, kStarts, end);
}

void ProcessAgent::finish(const AgentContext& context) {
  AgentContext last = context;
  last.evaluations_left = 0;
  last.minutes_left = 0;
  (void)next(last);
}

}  // namespace ks::agents
