// What the tests of this folder share: rows made in code, rows of the grids, inputs, answers as bytes.
#pragma once

#include <map>
#include <string>

#include "core/grid.h"
#include "operators/attention_fwd/attention_fwd.h"

namespace ks::attention_fwd {

/// A row with every column, to be changed by the test.
inline core::Scenario made_row(const std::string& name = "made") {
  core::Scenario row;
  row.id = 1;
  row.name = name;
  row.category = "test";
  row.origin = "grid.tsv:9";
  row.values = {{"dtype", "fp32"}, {"B", "1"},       {"Hq/Hkv", "1/1"},   {"Sq", "2"}, {"Sk", "2"},
                {"D/Dv", "8/8"},   {"mask", "full"}, {"layout", "dense"}, {"note", ""}};
  return row;
}

inline core::Scenario made_row(const std::map<std::string, std::string>& values) {
  core::Scenario row = made_row();
  for (const auto& [column, text] : values) row.values[column] = text;
  return row;
}

inline core::Grid grid(const std::string& name) {
  return core::read_grid(base::fs::path(KS_SOURCE_DIR) / "operators/attention_fwd/grids" / (name + ".tsv"));
}

inline op::Buffers empty_buffers(const op::Problem& problem) {
  op::Buffers buffers;
  for (const auto& tensor : problem.tensors) buffers.emplace_back(tensor.bytes);
  return buffers;
}

inline op::Buffers inputs_of(const op::Problem& problem, const std::string& recipe, uint64_t seed,
                             bool nan_slack = false) {
  op::Buffers buffers = empty_buffers(problem);
  AttentionFwd().make_inputs(problem, recipe, seed, nan_slack, buffers);
  return buffers;
}

}  // namespace ks::attention_fwd
