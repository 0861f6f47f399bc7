// kernelseek data check: validates every data file: grids, devices, baselines, and what other parts add.
#include "base/table.h"
#include "base/toml.h"
#include "cli/commands.h"
#include "cli/data_checks.h"
#include "evaluator/baselines.h"
#include "evaluator/operators.h"
#include "evaluator/oracle_client.h"

namespace ks::cli {
namespace {

/// Every row of every grid of every operator must make a problem.
void check_grids(DataReport& report) {
  for (const auto& name : evaluator::known_operators()) {
    const auto the_operator = evaluator::find_operator(name);
    evaluator::OracleClient oracle(the_operator.shared_object.string(), "cpu", 1, {});
    for (const auto& entry : base::fs::directory_iterator(the_operator.folder / "grids")) {
      report.check(entry.path().string(), [&] {
        const auto grid = core::read_grid(entry.path());
        for (const auto& scenario : grid.scenarios) report.check_part([&] { oracle.problem(scenario); });
      });
    }
  }
}

void check_devices(DataReport& report) {
  for (const auto& entry : base::fs::directory_iterator(base::project_root() / "data/devices"))
    report.check(entry.path().string(), [&] {
      const auto file = base::read_toml_file(entry.path().string());
      for (const char* key : {"peak_clock_ghz", "peak_flops_per_cycle_per_core"})
        if (!file.values.contains(key)) throw Error("{}: the key \"{}\" is missing", file.path, key);
    });
}

void check_baselines(DataReport& report) {
  const auto folder = base::project_root() / "baselines";
  if (!base::fs::exists(folder)) return;
  report.check(folder.string(), [&] {
    for (const auto& baseline : evaluator::known_baselines(""))
      for (const auto& name : baseline.operators) evaluator::find_operator(name);
  });
}

void data_check() {
  DataReport report;
  check_grids(report);
  check_devices(report);
  check_baselines(report);
  for (const auto& more : more_data_checks()) more(report);
  for (const auto& problem : report.problems) fmt::print("{}\n", problem);
  fmt::print("{} files checked, {} problems\n", report.files, report.problems.size());
  exit_code() = report.problems.empty() ? kDone : kWrong;
}

}  // namespace

void DataReport::check(const std::string& file, const std::function<void()>& body) {
  ++files;
  current = file;
  check_part(body);
}

void DataReport::check_part(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    const std::string text = e.what();
    problems.push_back(text.starts_with(current) ? text : current + ": " + text);
  }
}

std::vector<std::function<void(DataReport&)>>& more_data_checks() {
  static std::vector<std::function<void(DataReport&)>> checks;
  return checks;
}

void add_data_command(CLI::App& app) {
  auto* command = app.add_subcommand("data", "The project's data files");
  command->require_subcommand(1);
  command->footer("Example: kernelseek data check");
  command->add_subcommand("check", "Validate grids, devices, baselines, questions, agents and tasks")
      ->callback(data_check);
}

}  // namespace ks::cli
