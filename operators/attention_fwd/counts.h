// What one call costs at least: operations on visible pairs, and bytes that cannot be avoided.
#pragma once

#include "operators/attention_fwd/spec.h"

namespace ks::attention_fwd {

struct Counts {
  double visible_pairs = 0;  ///< (row, key) pairs that the mask lets through, over the members, for one query head
  double flops = 0;          ///< 2 * (key_dim + value_dim) for each pair and query head
  double bytes = 0;          ///< visible keys and values, rows that see a key, all outputs, appended keys
};

Counts count(const Spec& spec, const ks_attention_fwd_shape& shape);

}  // namespace ks::attention_fwd
