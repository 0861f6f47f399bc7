// kernelseek scenarios OPERATOR: lists a grid, a row each.
#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"
#include "evaluator/operators.h"

namespace ks::cli {
namespace {

struct ScenariosOptions {
  std::string operator_name, grid = "demo";
  bool json = false;
};

void scenarios_command(const ScenariosOptions& options) {
  const auto the_operator = evaluator::find_operator(options.operator_name);
  const auto grid = evaluator::load_grid(the_operator, options.grid);
  if (options.json) {
    Json rows = Json::array();
    for (const auto& scenario : grid.scenarios)
      rows.push_back(
          {{"id", scenario.id}, {"name", scenario.name}, {"category", scenario.category}, {"values", scenario.values}});
    fmt::print("{}\n", rows.dump(1));
    return;
  }
  base::TextTable table(grid.columns);
  for (const auto& scenario : grid.scenarios) {
    std::vector<std::string> row;
    for (const auto& column : grid.columns) {
      if (column == "#")
        row.push_back(std::to_string(scenario.id));
      else if (column == "name")
        row.push_back(scenario.name);
      else if (column == "category")
        row.push_back(scenario.category);
      else
        row.push_back(scenario.values.at(column));
    }
    table.add(std::move(row));
  }
  fmt::print("{}{} scenarios in grid {} of {}\n", table.text(base::terminal_width()), grid.scenarios.size(), grid.name,
             the_operator.name);
}

}  // namespace

void add_scenarios_command(CLI::App& app) {
  auto options = std::make_shared<ScenariosOptions>();
  auto* command = app.add_subcommand("scenarios", "List a grid of an operator");
  command->footer("Example: kernelseek scenarios attention_fwd --grid hopper");
  command->add_option("operator", options->operator_name, "Operator by name, or the path of its folder")->required();
  command->add_option("--grid", options->grid, "Grid by name, or a file")->capture_default_str();
  command->add_flag("--json", options->json, "For programs");
  command->callback([options] { scenarios_command(*options); });
}

}  // namespace ks::cli
