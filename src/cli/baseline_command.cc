// kernelseek baseline list | install: the implementations compared with.
#include "base/subprocess.h"
#include "base/table.h"
#include "cli/commands.h"
#include "evaluator/baselines.h"

namespace ks::cli {
namespace {

void list_baselines(bool json) {
  Json rows = Json::array();
  base::TextTable table({"name", "device", "installed", "operators", "what", "from"});
  for (const auto& baseline : evaluator::known_baselines("")) {
    const auto missing = evaluator::missing_parts(baseline);
    rows.push_back({{"name", baseline.name},
                    {"device", baseline.device},
                    {"installed", missing.empty()},
                    {"missing", missing},
                    {"operators", baseline.operators},
                    {"summary", baseline.summary},
                    {"from", baseline.from}});
    table.add({baseline.name, baseline.device, missing.empty() ? "yes" : "no",
               fmt::format("{}", fmt::join(baseline.operators, ", ")), baseline.summary, baseline.from});
  }
  if (json)
    fmt::print("{}\n", rows.dump(1));
  else
    fmt::print("{}install one with: kernelseek baseline install NAME\n", table.text(base::terminal_width()));
}

/// Makes the project's own Python environment if it is not there.
void make_environment() {
  if (base::fs::exists(evaluator::environment_folder() / "bin/python3")) return;
  const auto made = base::run_process(
      {.argv = {"python3", "-m", "venv", evaluator::environment_folder().string()}, .timeout_s = 300});
  if (!made.ok())
    throw Error("cannot make a Python environment in {}: {} (on Debian and Ubuntu: apt-get install python3-venv)",
                evaluator::environment_folder().string(), made.err);
}

void install_baseline(const std::string& name) {
  const auto baseline = evaluator::find_baseline(name, "");
  if (!baseline.packages.empty()) {
    make_environment();
    std::vector<std::string> command = {(evaluator::environment_folder() / "bin/python3").string(),
                                        "-m",
                                        "pip",
                                        "install",
                                        "--quiet",
                                        "--no-deps",
                                        "--only-binary=:all:"};
    command.insert(command.end(), baseline.packages.begin(), baseline.packages.end());
    const auto result = base::run_process({.argv = command, .timeout_s = 1800});
    if (!result.ok()) throw Error("pip could not install {}:\n{}", name, result.err);
  }
  if (const auto missing = evaluator::missing_parts(baseline); !missing.empty())
    throw Error(
        "baseline {} is not whole: {}{}", name, missing,
        baseline.apt.empty() ? "" : fmt::format("; install the distribution's {}", fmt::join(baseline.apt, " ")));
  fmt::print("baseline {} is installed\n", name);
}

}  // namespace

void add_baseline_command(CLI::App& app) {
  auto* command = app.add_subcommand("baseline", "The implementations that candidates are compared with");
  command->footer("Example: kernelseek baseline install onednn");
  command->require_subcommand(1);
  auto json = std::make_shared<bool>(false);
  auto* list = command->add_subcommand("list", "What there is, and what is installed");
  list->add_flag("--json", *json, "For programs");
  list->callback([json] { list_baselines(*json); });
  auto name = std::make_shared<std::string>();
  auto* install = command->add_subcommand("install", "Get a baseline's packages into the project's own environment");
  install->add_option("name", *name, "Baseline")->required();
  install->callback([name] { install_baseline(*name); });
}

}  // namespace ks::cli
