// An agent that lives in a process of its own and is spoken to over file descriptor 3 in JSON lines: a context goes in,
// a step comes out. The tuner runs this way, so a crash of either side is a matter of starting it again.
#pragma once

#include <atomic>
#include <memory>

#include "agents/agent.h"
#include "base/subprocess.h"

namespace ks::agents {

class ProcessAgent : public Agent {
 public:
  ProcessAgent(std::string name, base::SpawnOptions options) : name_(std::move(name)), options_(std::move(options)) {}
  std::string name() const override { return name_; }
  /// Starts the process where it is not running; one that dies is started again up to three times.
  AgentStep next(const AgentContext& context) override;
  AgentStep begin(const AgentContext& context) override { return next(context); }
  void finish(const AgentContext& context) override;
  void stop() override { stopping_ = true; }

 private:
  std::string name_;
  base::SpawnOptions options_;
  std::unique_ptr<base::Child> child_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace ks::agents
