// From a read row to a problem: the ABI's structs, the tensors with their strides and slots, limits and counts.
#pragma once

#include "operators/attention_fwd/spec.h"
#include "operators/operator.h"

namespace ks::attention_fwd {

/// Positions of the tensors in Problem::tensors; -1 where the problem has none.
struct TensorIndex {
  int query = -1, key = -1, value = -1, new_key = -1, new_value = -1, cu_rows = -1, cu_keys = -1, key_lengths = -1,
      page_table = -1, leftpad = -1, rotary_cos = -1, rotary_sin = -1, sinks = -1, query_descale = -1, key_descale = -1,
      value_descale = -1, output = -1, lse = -1;
};
TensorIndex index_tensors(const op::Problem& problem);

op::Problem make_problem(const core::Scenario& scenario);

/// The SHAPE struct of a problem.
const ks_attention_fwd_shape& shape_of(const op::Problem& problem);

/// Pages that a member of so many keys owns.
inline int64_t pages_of(int64_t keys, int64_t page_size) {
  return (keys + page_size - 1) / page_size;
}

}  // namespace ks::attention_fwd
