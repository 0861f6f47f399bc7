// Reads the cells of a grid's row. Every error names the row's origin, the column and what would be right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/grid.h"

namespace ks::op {

/// Throws ks::Error "file:line: column "Sq": …".
[[noreturn]] void cell_error(const core::Scenario& scenario, const std::string& column, const std::string& what);

/// The text of a column; throws if the grid has none of that name.
const std::string& cell(const core::Scenario& scenario, const std::string& column);

/// A whole number in [low, high].
int64_t parse_number(const core::Scenario& scenario, const std::string& column, std::string_view text, int64_t low,
                     int64_t high);

/// Two whole numbers "32/8".
std::pair<int64_t, int64_t> parse_pair(const core::Scenario& scenario, const std::string& column, int64_t low,
                                       int64_t high);

/// The pieces between separators, without the blanks around them.
std::vector<std::string> split(std::string_view text, char separator);

/// The text without blanks at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace ks::op
