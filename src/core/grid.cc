#include "core/grid.h"

#include <algorithm>
#include <charconv>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/hash.h"

namespace ks::core {
namespace {

std::vector<std::string> split_tabs(const std::string& line) {
  std::vector<std::string> cells;
  size_t start = 0;
  while (true) {
    const size_t end = line.find('\t', start);
    cells.push_back(line.substr(start, end - start));
    if (end == std::string::npos) break;
    start = end + 1;
  }
  if (!cells.back().empty() && cells.back().back() == '\r') cells.back().pop_back();
  return cells;
}

int parse_id(const std::string& cell, const std::string& origin) {
  int id = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), id);
  if (error != std::errc() || end != cell.data() + cell.size() || id <= 0)
    throw Error("{}: column \"#\" must be a positive number, not \"{}\"", origin, cell);
  return id;
}

void require_columns(const Grid& grid, const std::string& origin) {
  for (const char* needed : {"#", "category", "name"})
    if (std::find(grid.columns.begin(), grid.columns.end(), needed) == grid.columns.end())
      throw Error("{}: the header must name the column \"{}\" (columns are separated by tabs)", origin, needed);
}

Scenario parse_row(const Grid& grid, const std::vector<std::string>& cells, const std::string& origin) {
  if (cells.size() != grid.columns.size())
    throw Error("{}: {} columns where the header has {} (columns are separated by tabs)", origin, cells.size(),
                grid.columns.size());
  Scenario scenario;
  scenario.origin = origin;
  for (size_t c = 0; c < cells.size(); ++c) {
    if (grid.columns[c] == "#")
      scenario.id = parse_id(cells[c], origin);
    else if (grid.columns[c] == "name")
      scenario.name = cells[c];
    else if (grid.columns[c] == "category")
      scenario.category = cells[c];
    else
      scenario.values[grid.columns[c]] = cells[c];
  }
  if (scenario.name.empty()) throw Error("{}: the name is empty", origin);
  return scenario;
}

}  // namespace

Grid read_grid(const base::fs::path& path) {
  Grid grid;
  grid.path = path.string();
  grid.name = path.stem().string();
  grid.hash = base::sha256_hex(base::read_file(path));
  std::set<std::string> names;
  std::set<int> ids;
  int line_number = 0;
  for (const auto& line : base::read_lines(path)) {
    const std::string origin = fmt::format("{}:{}", grid.path, ++line_number);
    if (line.empty() || line.starts_with("# ")) continue;
    const auto cells = split_tabs(line);
    if (grid.columns.empty()) {
      grid.columns = cells;
      require_columns(grid, origin);
      continue;
    }
    Scenario scenario = parse_row(grid, cells, origin);
    if (!names.insert(scenario.name).second) throw Error("{}: the name \"{}\" occurs twice", origin, scenario.name);
    if (!ids.insert(scenario.id).second) throw Error("{}: the number {} occurs twice", origin, scenario.id);
    grid.scenarios.push_back(std::move(scenario));
  }
  if (grid.scenarios.empty()) throw Error("{}: the grid has no rows", grid.path);
  return grid;
}

std::vector<Scenario> filter_scenarios(const Grid& grid, const std::string& expression) {
  std::regex pattern;
  try {
    pattern = std::regex(expression, std::regex::icase);
  } catch (const std::regex_error& e) {
    throw Error("--filter \"{}\": not a regular expression ({})", expression, e.what());
  }
  std::vector<Scenario> result;
  std::set<std::string> categories;
  for (const auto& scenario : grid.scenarios) {
    categories.insert(scenario.category);
    if (std::regex_search(scenario.category + "/" + scenario.name, pattern)) result.push_back(scenario);
  }
  if (result.empty())
    throw Error("--filter \"{}\" matches no scenario of grid {}; its categories: {}", expression, grid.name,
                fmt::join(categories, ", "));
  return result;
}

}  // namespace ks::core
