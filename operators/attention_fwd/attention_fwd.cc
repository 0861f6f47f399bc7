#include "operators/attention_fwd/attention_fwd.h"

#include "operators/attention_fwd/inputs.h"
#include "operators/attention_fwd/layout.h"
#include "operators/attention_fwd/reference.h"
#include "operators/attention_fwd/symmetry.h"
#ifdef KS_WITH_CUDA
#include "operators/attention_fwd/cuda/solve_on_gpu.h"
#endif

namespace ks::attention_fwd {

std::vector<op::ColumnDoc> AttentionFwd::columns() const {
  return column_docs();
}

op::Problem AttentionFwd::problem(const core::Scenario& scenario) const {
  return make_problem(scenario);
}

std::vector<op::Recipe> AttentionFwd::recipes(const op::Problem& problem) const {
  return list_recipes(problem);
}

void AttentionFwd::make_inputs(const op::Problem& problem, const std::string& recipe, uint64_t seed, bool nan_slack,
                               op::Buffers& buffers) const {
  fill_inputs(problem, recipe, seed, nan_slack, buffers);
}

op::Expected AttentionFwd::solve(const op::Problem& problem, const op::Buffers& buffers, const op::Coverage& coverage,
                                 int threads) const {
  return attention_fwd::solve(problem, buffers, coverage, threads);
}

#ifdef KS_WITH_CUDA
bool AttentionFwd::solve_on_gpu(const op::Problem& problem, const std::vector<const void*>& inputs,
                                const std::vector<float*>& values, void* stream) const {
  return attention_fwd::solve_on_gpu(problem, inputs, values, stream);
}
#endif

op::Symmetry AttentionFwd::draw_symmetry(const op::Problem& problem, const op::Buffers& buffers, uint64_t seed) const {
  return random_symmetry(problem, buffers, seed);
}

}  // namespace ks::attention_fwd

KS_OPERATOR(ks::attention_fwd::AttentionFwd)
