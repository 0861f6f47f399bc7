#include "operators/cells.h"

#include <charconv>

namespace ks::op {

void cell_error(const core::Scenario& scenario, const std::string& column, const std::string& what) {
  throw Error("{}: column \"{}\": {}", scenario.origin, column, what);
}

const std::string& cell(const core::Scenario& scenario, const std::string& column) {
  const auto found = scenario.values.find(column);
  if (found == scenario.values.end())
    cell_error(scenario, column, "the grid has no such column, and this operator needs it");
  return found->second;
}

int64_t parse_number(const core::Scenario& scenario, const std::string& column, std::string_view text, int64_t low,
                     int64_t high) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    cell_error(scenario, column, fmt::format("\"{}\" is not a whole number", text));
  if (value < low || value > high)
    cell_error(scenario, column, fmt::format("{} is out of range: {} to {}", value, low, high));
  return value;
}

std::pair<int64_t, int64_t> parse_pair(const core::Scenario& scenario, const std::string& column, int64_t low,
                                       int64_t high) {
  const std::string& text = cell(scenario, column);
  const size_t slash = text.find('/');
  if (slash == std::string::npos)
    cell_error(scenario, column, fmt::format("\"{}\" must be two numbers, as 32/8", text));
  const std::string_view view = text;
  return {parse_number(scenario, column, view.substr(0, slash), low, high),
          parse_number(scenario, column, view.substr(slash + 1), low, high)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    pieces.emplace_back(trimmed(text.substr(start, end == std::string_view::npos ? end : end - start)));
    if (end == std::string_view::npos) return pieces;
    start = end + 1;
  }
}

}  // namespace ks::op
