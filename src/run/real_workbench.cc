// The workbench of real runs.
#include "agents/command_agent.h"
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
  setup.sink(
      "session_start", "main",
      {{"session", "main"}, {"agent", "tuner"}, {"isolated", isolated.is_isolated}, {"unisolated", isolated.why_not}});
  return std::make_unique<agents::ProcessAgent>("tuner", isolated.options);
}

std::string budget_text(const Budget& budget) {
  std::string text;
  if (budget.minutes > 0) text += fmt::format("{:g} minutes", budget.minutes);
  if (budget.evaluations > 0) text += fmt::format("{}{} evaluations", text.empty() ? "" : ", ", budget.evaluations);
  return text;
}

/// A program that data/agents describes.
std::unique_ptr<agents::Agent> make_program(const AgentSetup& setup) {
  const Task& task = setup.task;
  agents::CommandSetup command;
  command.description = agents::find_description(task.agent);
  command.model = task.model;
  command.kernelseek = base::fs::read_symlink("/proc/self/exe").string();
  const base::fs::path candidate = base::fs::path(task.candidate).lexically_normal();
  command.prompt = agents::filled(
      base::read_file(base::project_root() / "data" / "prompts" / "agent.md"),
      {{"candidate", (candidate.filename().empty() ? candidate.parent_path() : candidate).filename().string()},
       {"operator", task.operator_name},
       {"grid", task.grid},
       {"goal", task.goal},
       {"budget", budget_text(task.budget)},
       {"kernelseek", command.kernelseek},
       {"instructions", task.instructions}});
  const auto transcripts = setup.paths.root / "agent";
  base::make_folder(transcripts);
  command.isolation.run_folder = setup.paths.root;
  command.isolation.work = setup.paths.work();
  command.isolation.readable = {setup.paths.told()};
  command.isolation.writable = {setup.paths.hook(), transcripts, setup.paths.agent_socket()};
  command.isolation.network = true;
  if (const char* home = std::getenv("HOME"); home != nullptr)
    for (const auto& name : command.description.home_writes)
      command.isolation.writable.push_back(base::fs::path(home) / name);
  command.socket = setup.paths.agent_socket();
  command.logs = setup.paths.logs();
  command.run_folder = setup.paths.root;
  command.sink = setup.sink;
  command.should_stop = setup.should_stop;
  return std::make_unique<agents::CommandAgent>(std::move(command));
}

std::unique_ptr<agents::Agent> make_agent(const AgentSetup& setup) {
  return setup.task.agent == "tuner" ? make_tuner(setup) : make_program(setup);
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
