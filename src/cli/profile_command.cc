// kernelseek profile CANDIDATE --scenario NAME: a profiler's raw report of one scenario, never summarised away.
// The profiler runs our own check of that scenario and looks at the worker process alone.
#include "base/file.h"
#include "base/subprocess.h"
#include "cli/commands.h"
#include "evaluator/candidate.h"

namespace ks::cli {
namespace {

struct ProfileOptions {
  std::string candidate, operator_name, grid, scenario, report = "profile";
  std::vector<std::string> sections;
  bool source = false;
};

/// The evaluation that is profiled is this process's own, also within a run.
const std::vector<std::pair<std::string, std::string>> kNoRun = {{"KERNELSEEK_RUN_SOCKET", ""}};

std::string quoted_for_regex(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (std::string("\\^$.|?*+()[]{}").find(c) != std::string::npos) text += '\\';
    text += c;
  }
  return text;
}

std::vector<std::string> evaluation_of(const ProfileOptions& options) {
  std::vector<std::string> command = {(base::executable_folder() / "kernelseek").string(),
                                      "evaluate",
                                      options.candidate,
                                      "--grid",
                                      options.grid,
                                      "--filter",
                                      "/" + quoted_for_regex(options.scenario) + "$",
                                      "--check-only",
                                      "--baseline",
                                      "none",
                                      "--unsealed"};
  if (!options.operator_name.empty()) command.insert(command.end(), {"--operator", options.operator_name});
  return command;
}

void profile_gpu(const ProfileOptions& options) {
  std::vector<std::string> command = {"ncu",
                                      "--target-processes",
                                      "all",
                                      "--target-processes-filter",
                                      "kernelseek-worker",
                                      "--clock-control",
                                      "none",
                                      "--force-overwrite",
                                      "-o",
                                      options.report};
  if (options.sections.empty()) command.insert(command.end(), {"--set", "full"});
  for (const auto& section : options.sections) command.insert(command.end(), {"--section", section});
  if (options.source) command.insert(command.end(), {"--import-source", "yes"});
  for (auto& word : evaluation_of(options)) command.push_back(word);
  command.insert(command.end(), {"--device", "cuda"});
  const auto result =
      base::run_process({.argv = command, .env = kNoRun, .timeout_s = 1800, .max_output_bytes = 1u << 30});
  if (!base::fs::exists(options.report + ".ncu-rep"))
    throw Error(
        "ncu made no report:\n{}{}\nWhere counters are forbidden, the driver's NVreg_RestrictProfilingToAdminUsers=0 "
        "or "
        "root allows them.",
        result.out, result.err);
  const auto text = base::run_process({.argv = {"ncu", "--import", options.report + ".ncu-rep", "--page", "details"},
                                       .timeout_s = 600,
                                       .max_output_bytes = 1u << 30});
  fmt::print("{}report: {}.ncu-rep\n", text.out, options.report);
}

void profile_cpu(const ProfileOptions& options) {
  std::vector<std::string> command = {"perf", "stat", "-d"};
  for (auto& word : evaluation_of(options)) command.push_back(word);
  const auto result = base::run_process({.argv = command, .env = kNoRun, .timeout_s = 600});
  if (!result.ok())
    throw Error("perf could not count: {} (apt-get install linux-perf; some machines give no counters)", result.err);
  fmt::print("{}{}", result.out, result.err);
}

}  // namespace

void add_profile_command(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  auto* command = app.add_subcommand("profile", "A profiler's raw report of a candidate on one scenario");
  command->footer("Example: kernelseek profile kernels/fa3_hopper --grid hopper --scenario pc128-4096");
  command->add_option("candidate", options->candidate, "Source file or folder")->required();
  command->add_option("--scenario", options->scenario, "Scenario by name")->required();
  command->add_option("--grid", options->grid, "Grid that has the scenario")->required();
  command->add_option("--operator", options->operator_name, "Operator, where the candidate names none");
  command->add_option("--section", options->sections, "Sections of the report (repeat); default: the full set");
  command->add_flag("--source", options->source, "Import the sources into the report");
  command->add_option("--report", options->report, "Report file, without its ending")->capture_default_str();
  command->callback([options] {
    if (evaluator::load_candidate(options->candidate, options->operator_name).device == "cuda")
      profile_gpu(*options);
    else
      profile_cpu(*options);
  });
}

}  // namespace ks::cli
