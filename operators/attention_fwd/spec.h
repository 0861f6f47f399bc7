// A row of attention's grid, read: types, heads, lengths of every member, mask, layout.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/attention_fwd.h"
#include "core/dtype.h"
#include "core/grid.h"
#include "operators/operator.h"

namespace ks::attention_fwd {

enum class Descale { kNone, kScalar, kPerHead };

struct Spec {
  core::Dtype query_dtype = core::Dtype::kF32, kv_dtype = core::Dtype::kF32, output_dtype = core::Dtype::kF32;
  int32_t batch = 1, query_heads = 1, kv_heads = 1, key_dim = 0, value_dim = 0;
  int32_t rows_layout = KS_ROWS_DENSE, kv_layout = KS_KV_DENSE, page_size = 0;
  bool is_latent = false;  ///< MLA: values are the first value_dim columns of the keys, the query comes in two parts
  bool appends = false;    ///< each member's rows bring as many keys with them
  int32_t rotary_style = KS_ROTARY_NONE, rotary_dim = 0;
  bool has_leftpad = false, has_sinks = false;
  int32_t window_left = -1, window_right = -1;
  float softcap = 0, scale = 0;
  Descale descale = Descale::kNone;
  std::vector<int32_t> rows;     ///< query rows of each member
  std::vector<int32_t> keys;     ///< keys of each member, appended ones included
  std::vector<int32_t> leftpad;  ///< keys before these are padding; empty unless has_leftpad

  int32_t new_keys() const { return appends ? rows[0] : 0; }
  int32_t group() const { return query_heads / kv_heads; }
};

/// Throws ks::Error "origin: column …: …" where a cell cannot be read or cells contradict each other.
Spec read_spec(const core::Scenario& scenario);

/// The columns of the grid, in words.
std::vector<op::ColumnDoc> column_docs();

/// The keys that row i of a member sees: first .. last, none if last < first.
struct Visible {
  int64_t first = 0, last = -1;
  int64_t count() const { return last < first ? 0 : last - first + 1; }
};
Visible visible_keys(const ks_attention_fwd_shape& shape, int64_t row, int64_t rows, int64_t keys, int64_t leftpad);

/// The keys that at least one row of a member sees (they lie together).
Visible visible_to_any(const ks_attention_fwd_shape& shape, int64_t rows, int64_t keys, int64_t leftpad);

}  // namespace ks::attention_fwd
