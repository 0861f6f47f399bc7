// Attention forward: the first operator. contract.md says what is computed and how exactly; this ties the parts
// together.
#pragma once

#include "operators/operator.h"

namespace ks::attention_fwd {

class AttentionFwd : public op::Operator {
 public:
  std::string name() const override { return "attention_fwd"; }
  std::vector<op::ColumnDoc> columns() const override;
  op::Problem problem(const core::Scenario& scenario) const override;
  std::vector<op::Recipe> recipes(const op::Problem& problem) const override;
  void make_inputs(const op::Problem& problem, const std::string& recipe, uint64_t seed, bool nan_slack,
                   op::Buffers& buffers) const override;
  op::Expected solve(const op::Problem& problem, const op::Buffers& buffers, const op::Coverage& coverage,
                     int threads) const override;
#ifdef KS_WITH_CUDA
  bool solve_on_gpu(const op::Problem& problem, const std::vector<const void*>& inputs,
                    const std::vector<float*>& values, void* stream) const override;
#endif
  op::Symmetry draw_symmetry(const op::Problem& problem, const op::Buffers& buffers, uint64_t seed) const override;
};

}  // namespace ks::attention_fwd
