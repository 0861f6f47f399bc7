// Reads the length notation of the columns Sq and Sk: how many rows or keys each member of a batch has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/grid.h"

namespace ks::attention_fwd {

/// The lengths of `batch` members. One number holds for all members; see docs/formats/grid.md for lists. Draws come
/// from the scenario's name and the column, so a row of a grid always means the same lengths.
std::vector<int32_t> read_lengths(const core::Scenario& scenario, const std::string& column, int64_t batch);

/// The seed of everything drawn for a scenario's shape, by its name and a purpose.
uint64_t shape_seed(const core::Scenario& scenario, const std::string& purpose);

}  // namespace ks::attention_fwd
