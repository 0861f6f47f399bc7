// kernelseek experiment PLAN.toml: arms and seeds of a plan as local runs, and what they say.
#include <csignal>
#include <memory>

#include "base/toml.h"
#include "cli/commands.h"
#include "cli/data_checks.h"
#include "experiment/run_experiment.h"
#include "run/task.h"

namespace ks::cli {
namespace {

std::atomic<bool> experiment_interrupted = false;

struct ExperimentCommandOptions {
  experiment::ExperimentOptions experiment;
  bool dry_run = false, json = false;
};

void experiment_command(ExperimentCommandOptions& options) {
  auto& experiment = options.experiment;
  if (experiment.out.empty()) experiment.out = "experiments/" + base::fs::path(experiment.plan).stem().string();
  if (options.dry_run) {
    fmt::print("{}", experiment::describe_experiment(experiment));
    return;
  }
  std::signal(SIGINT, [](int) { experiment_interrupted = true; });
  std::signal(SIGTERM, [](int) { experiment_interrupted = true; });
  experiment.cancel = &experiment_interrupted;
  const auto result = experiment::run_experiment(experiment, run::real_workbench());
  if (options.json)
    fmt::print("{}\n", base::read_file(result.record));
  else
    fmt::print("{}{}\n", result.text, result.record);
  if (result.done == result.planned) return;
  fmt::print(stderr, "{} of {} runs are done; go on with: kernelseek experiment {} --out {} --resume\n", result.done,
             result.planned, experiment.plan, experiment.out);
  exit_code() = kCouldNot;
}

/// What `data check` looks at of ours: plans, and the tasks that lie beside them.
void check_plans(DataReport& report) {
  const auto folder = base::project_root() / "examples" / "experiments";
  if (!base::fs::is_directory(folder)) return;
  for (const auto& entry : base::fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    report.check(entry.path().string(), [&] {
      if (base::read_toml_file(entry.path().string()).values.contains("arms"))
        (void)experiment::read_plan(entry.path());
      else
        (void)run::read_task(entry.path());
    });
  }
}

}  // namespace

void add_experiment_command(CLI::App& app) {
  auto options = std::make_shared<ExperimentCommandOptions>();
  auto* command = app.add_subcommand("experiment", "Ways of steering compared: arms x seeds, paired statistics");
  command->footer(
      "Example: kernelseek experiment examples/experiments/tuner_cpu.toml --dry-run\n"
      "Exit code: 0 every run is done, 3 interrupted or could not be run.");
  command->add_option("plan", options->experiment.plan, "Plan file")->required();
  command->add_option("--out", options->experiment.out, "The experiment's folder (default: experiments/NAME)");
  command->add_flag("--resume", options->experiment.is_resumed, "Go on with the runs that are missing");
  command->add_flag("--dry-run", options->dry_run, "Say what would be run, and do nothing");
  command->add_flag("--json", options->json, "Print the record");
  command->callback([options] { experiment_command(*options); });
  more_data_checks().push_back(check_plans);
}

}  // namespace ks::cli
