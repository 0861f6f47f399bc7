// The workbench of real runs.
#include "agents/command_agent.h"
#include "agents/http_agent.h"
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

std::string own_program() {
  return base::fs::read_symlink("/proc/self/exe").string();
}

/// The first message to an agent.
std::string prompt_for(const AgentSetup& setup, const char* file) {
  const Task& task = setup.task;
  const base::fs::path candidate = base::fs::path(task.candidate).lexically_normal();
  return agents::filled(
      base::read_file(base::project_root() / "data" / "prompts" / file),
      {{"candidate", (candidate.filename().empty() ? candidate.parent_path() : candidate).filename().string()},
       {"operator", task.operator_name},
       {"grid", task.grid},
       {"goal", task.goal},
       {"budget", budget_text(task.budget)},
       {"kernelseek", own_program()},
       {"versions", setup.paths.versions().string()},
       {"instructions", task.instructions}});
}

/// What every agent's process may touch, whoever it is.
agents::IsolationSpec walls_for(const AgentSetup& setup) {
  const auto own = setup.paths.root / "agent";
  for (const char* part : {"home", "cache"}) base::make_folder(own / part);
  agents::IsolationSpec spec;
  spec.run_folder = setup.paths.root;
  spec.work = setup.paths.work();
  spec.readable = {setup.paths.told(), setup.paths.versions()};
  spec.writable = {own};
  spec.device_files = setup.task.device == "cuda";
  return spec;
}

/// The built-in agent: a model behind HTTP.
std::unique_ptr<agents::Agent> make_http(const AgentSetup& setup) {
  const Task& task = setup.task;
  agents::HttpAgentSetup http;
  // A provider's file of the task's is seen from where the task came from, also when the run is resumed.
  std::string origin = base::read_file(setup.paths.root / "origin");
  while (!origin.empty() && origin.back() == '\n') origin.pop_back();
  http.model = agents::find_model(task.model, base::fs::path(origin).parent_path());
  if (task.budget.cost_usd > 0 && !http.model.price)
    throw Error(
        "{}: the price of {} is not known, so budget.cost_usd cannot be kept; add it to [price] there, or give "
        "budget.tokens",
        http.model.file, http.model.model);
  http.send = agents::curl_send();
  http.prompt = prompt_for(setup, "http_agent.md");
  http.tools.isolation = walls_for(setup);
  http.tools.kernelseek = own_program();
  const base::fs::path candidate = base::fs::path(task.candidate).lexically_normal();
  http.tools.candidate = (candidate.filename().empty() ? candidate.parent_path() : candidate).filename().string();
  http.tools.operator_name = task.operator_name;
  http.tools.grid = task.grid;
  http.tools.cache = setup.paths.root / "agent" / "cache";
  http.tools.home = setup.paths.root / "agent" / "home";
  http.conversation = setup.paths.logs() / "conversation.jsonl";
  http.sink = setup.sink;
  http.should_stop = setup.should_stop;
  return std::make_unique<agents::HttpAgent>(std::move(http));
}

/// A program that data/agents describes.
std::unique_ptr<agents::Agent> make_program(const AgentSetup& setup) {
  const Task& task = setup.task;
  agents::CommandSetup command;
  command.description = agents::find_description(task.agent);
  command.model = task.model;
  command.kernelseek = own_program();
  command.prompt = prompt_for(setup, "agent.md");
  command.isolation = walls_for(setup);
  command.isolation.writable.insert(command.isolation.writable.end(), {setup.paths.hook(), setup.paths.agent_socket()});
  command.isolation.network = true;
  command.home = setup.paths.root / "agent" / "home";
  command.socket = setup.paths.agent_socket();
  command.logs = setup.paths.logs();
  command.run_folder = setup.paths.root;
  command.sink = setup.sink;
  command.should_stop = setup.should_stop;
  return std::make_unique<agents::CommandAgent>(std::move(command));
}

std::unique_ptr<agents::Agent> make_agent(const AgentSetup& setup) {
  if (setup.task.agent == "tuner") return make_tuner(setup);
  if (setup.task.agent == "http") return make_http(setup);
  return make_program(setup);
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
