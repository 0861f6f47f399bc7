// RMS normalisation of the rows of a matrix: the small operator, and the worked example of docs/operators.md.
#pragma once

#include "operators/operator.h"

namespace ks::rmsnorm {

/// Positions in Problem::tensors.
enum Tensors { kInput = 0, kWeight = 1, kOutput = 2 };

class RmsNorm : public op::Operator {
 public:
  std::string name() const override { return "rmsnorm"; }
  std::vector<op::ColumnDoc> columns() const override;
  op::Problem problem(const core::Scenario& scenario) const override;
  std::vector<op::Recipe> recipes(const op::Problem& problem) const override;
  void make_inputs(const op::Problem& problem, const std::string& recipe, uint64_t seed, bool nan_slack,
                   op::Buffers& buffers) const override;
  op::Expected solve(const op::Problem& problem, const op::Buffers& buffers, const op::Coverage& coverage,
                     int threads) const override;
  op::Symmetry draw_symmetry(const op::Problem& problem, const op::Buffers& buffers, uint64_t seed) const override;
};

}  // namespace ks::rmsnorm
