// Grids: the scenarios of an operator as data, one tab-separated row each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"

namespace ks::core {

/// One point of an operator's grid: the shapes, types and flags that a candidate is run with.
struct Scenario {
  int id = 0;                                 ///< the row's number, from column "#"
  std::string name;                           ///< unique in its grid, e.g. "decode_b1_s8192"
  std::string category;                       ///< by which results are grouped
  std::map<std::string, std::string> values;  ///< the other columns, as the operator's contract names them
  std::string origin;                         ///< "file:line", for error messages
};

/// The rows of one file, in order.
struct Grid {
  std::string name;
  std::string path;
  std::vector<std::string> columns;  ///< the header row
  std::vector<Scenario> scenarios;
  std::string hash;  ///< SHA-256 of the file's text
};

/// Reads a grid. The first line that does not begin with "# " is the header; it must name "#", "category" and "name".
/// Throws ks::Error "file:line: …" for a row with another number of columns, a number or a name that occurs twice.
Grid read_grid(const base::fs::path& path);

/// The scenarios whose "category/name" the regular expression finds (case-insensitive); throws ks::Error if the
/// expression is malformed or nothing matches (naming the categories there are).
std::vector<Scenario> filter_scenarios(const Grid& grid, const std::string& expression);

}  // namespace ks::core
