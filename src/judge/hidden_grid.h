// The grid that an agent never sees: scenarios of the goal's grid drawn by a secret seed, with lengths changed where
// the operator says in its hidden.toml which columns may be changed; the others stay as they are, in another order.
//
//   [[vary]]
//   columns = ["Sq", "Sk"]   # changed together, by one number a row, where the cell is a plain whole number …
//   least = 64               # … of at least this
//   most_change = 33         # by 1 to this much less
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/grid.h"

namespace ks::judge {

/// Columns that may change together.
struct VaryRule {
  std::vector<std::string> columns;
  int64_t least = 64;
  int64_t most_change = 33;
};

/// The rules of an operator's folder; none where it has no hidden.toml. Throws ks::Error where the file is malformed.
std::vector<VaryRule> read_vary_rules(const base::fs::path& operator_folder);

/// The text of a grid file of at most `count` scenarios, a pure function of its arguments.
std::string hidden_grid_text(const core::Grid& grid, const std::string& filter, const std::vector<VaryRule>& rules,
                             uint64_t seed, int count);

}  // namespace ks::judge
