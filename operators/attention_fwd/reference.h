// The answer, twice: one row by the definition, as plainly as it can be written, and all rows or a sample of them fast.
// The fast one is tested against the plain one, the plain one against cases worked out by hand.
#pragma once

#include "operators/attention_fwd/view.h"

namespace ks::attention_fwd {

/// One row of the answer. The view's cache must hold the appended keys already (append_keys).
struct RowAnswer {
  std::vector<double> output;
  double lse = 0;
};
RowAnswer reference_row(const View& view, int64_t b, int64_t i, int64_t h);

/// The answer in float64, on all rows or on some.
op::Expected solve(const op::Problem& problem, const op::Buffers& buffers, const op::Coverage& coverage, int threads);

}  // namespace ks::attention_fwd
