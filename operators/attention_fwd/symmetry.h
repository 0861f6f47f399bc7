// Secret symmetries of attention: changes of the inputs under which the known answer changes exactly. Members of the
// batch, kv heads with their query heads, query heads within a group and pages are permuted; columns of queries and
// keys are permuted and sign-flipped jointly; columns of values are permuted, sign-flipped and scaled by powers of two.
#pragma once

#include "operators/operator.h"

namespace ks::attention_fwd {

op::Symmetry random_symmetry(const op::Problem& problem, const op::Buffers& buffers, uint64_t seed);

}  // namespace ks::attention_fwd
