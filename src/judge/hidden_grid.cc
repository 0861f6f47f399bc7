#include "judge/hidden_grid.h"

#include <algorithm>

#include "base/hash.h"
#include "base/toml.h"

namespace ks::judge {
namespace {

/// The value of a cell that is a plain whole number; -1 otherwise.
int64_t plain_number(const std::string& cell) {
  if (cell.empty() || cell.size() > 12 || cell.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(cell);
}

void vary(core::Scenario& scenario, const std::vector<VaryRule>& rules, base::Random& random) {
  bool changed = false;
  for (const auto& rule : rules) {
    const auto change = static_cast<int64_t>(1 + random.below(static_cast<uint64_t>(rule.most_change)));
    for (const auto& column : rule.columns) {
      const auto cell = scenario.values.find(column);
      if (cell == scenario.values.end()) continue;
      const int64_t value = plain_number(cell->second);
      if (value < rule.least || value <= change) continue;
      cell->second = std::to_string(value - change);
      changed = true;
    }
  }
  if (changed) scenario.name += "-h";
}

}  // namespace

std::vector<VaryRule> read_vary_rules(const base::fs::path& operator_folder) {
  const auto path = operator_folder / "hidden.toml";
  std::vector<VaryRule> rules;
  if (!base::fs::exists(path)) return rules;
  const auto file = base::read_toml_file(path.string());
  for (const Json& entry : base::value_or<Json>(file.values, "vary", Json::array())) {
    VaryRule rule;
    rule.columns = base::require<std::vector<std::string>>(entry, "columns", path.string());
    rule.least = base::value_or<int64_t>(entry, "least", rule.least);
    rule.most_change = base::value_or<int64_t>(entry, "most_change", rule.most_change);
    if (rule.columns.empty() || rule.least < 2 || rule.most_change < 1 || rule.most_change >= rule.least)
      throw Error("{}: a [[vary]] needs columns, and most_change below least", path.string());
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::string hidden_grid_text(const core::Grid& grid, const std::string& filter, const std::vector<VaryRule>& rules,
                             uint64_t seed, int count) {
  auto scenarios = filter.empty() ? grid.scenarios : core::filter_scenarios(grid, filter);
  base::Random random(seed);
  for (size_t i = scenarios.size(); i > 1; --i) std::swap(scenarios[i - 1], scenarios[random.below(i)]);
  scenarios.resize(std::min(scenarios.size(), static_cast<size_t>(std::max(count, 0))));
  std::string text = "# A hidden grid, drawn for one run.\n";
  for (size_t i = 0; i < grid.columns.size(); ++i) text += (i == 0 ? "" : "\t") + grid.columns[i];
  text += "\n";
  int id = 0;
  for (auto& scenario : scenarios) {
    vary(scenario, rules, random);
    ++id;
    for (size_t i = 0; i < grid.columns.size(); ++i) {
      const std::string& column = grid.columns[i];
      const auto value = scenario.values.find(column);
      text += i == 0 ? "" : "\t";
      if (column == "#")
        text += std::to_string(id);
      else if (column == "name")
        text += scenario.name;
      else if (column == "category")
        text += scenario.category;
      else if (value != scenario.values.end())
        text += value->second;
    }
    text += "\n";
  }
  return text;
}

}  // namespace ks::judge
