// Finds operators: those of this tree by name, others by the path of their folder (built at first use, cached).
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "core/grid.h"

namespace ks::evaluator {

/// An operator's folder and the library that the oracle loads.
struct OperatorFolder {
  std::string name;
  base::fs::path folder;
  base::fs::path shared_object;
  base::fs::path abi_include;  ///< folder of its ABI header
};

/// Names of the operators in this tree.
std::vector<std::string> known_operators();

/// By name or path. Throws ks::Error naming what there is, or why a folder outside the tree does not build.
OperatorFolder find_operator(const std::string& name_or_path);

/// A grid of the operator by name, or any grid file by path.
core::Grid load_grid(const OperatorFolder& the_operator, const std::string& name_or_file);

}  // namespace ks::evaluator
