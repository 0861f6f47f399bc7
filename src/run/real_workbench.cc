// The workbench of real runs.
#include "agents/isolation.h"
#include "agents/process_agent.h"
#include "agents/tuner.h"
#include "run/asker.h"
#include "run/workbench.h"

namespace ks::run {
namespace {

/// The tuner in a process of its own, behind the same walls as any agent and without a network.
std::unique_ptr<agents::Agent> make_tuner(const AgentSetup& setup) {
  base::SpawnOptions options;
  options.argv = {base::fs::read_symlink("/proc/self/exe").string(), "agent", "tuner"};
  options.folder = setup.paths.work().string();
  agents::IsolationSpec spec;
  spec.run_folder = setup.paths.root;
  spec.work = setup.paths.work();
  const auto isolated = agents::isolate(options, spec);
  setup.sink("session_start", "main", {{"session", "main"}, {"agent", "tuner"}, {"isolated", isolated.is_isolated},
                                       {"unisolated", isolated.why_not}});
  return std::make_unique<agents::ProcessAgent>("tuner", isolated.options);
}

std::unique_ptr<agents::Agent> make_agent(const AgentSetup& setup) {
  if (setup.task.agent == "tuner") return make_tuner(setup);
  throw Error("{}: unknown agent \"{}\"; known: tuner", setup.task.path, setup.task.agent);
}

}  // namespace

Workbench real_workbench() {
  Workbench bench;
  bench.evaluate = evaluator::evaluate;
  bench.make_agent = make_agent;
  bench.make_questioner = [](const Task& task, const RunPaths& paths) { return make_asker(task, paths.root); };
  return bench;
}

}  // namespace ks::run
