// Rotary embedding of rows and what appending does to a cache.
#pragma once

#include "operators/attention_fwd/view.h"

namespace ks::attention_fwd {

/// Rotates the leading rotary_dim columns of a row, in place, by the angles of a position. A pair (x, y) becomes
/// (x cos - y sin, x sin + y cos).
void rotate_row(const View& view, int64_t position, double* row);

/// The buffers as a call leaves the cache: the appended keys, rotated and rounded to the cache's type, and values lie
/// behind each member's old ones.
op::Buffers append_keys(const op::Problem& problem, const op::Buffers& buffers);

/// True for each row of the key tensor (slot and head) that the call writes.
std::vector<uint8_t> written_rows(const View& view);

}  // namespace ks::attention_fwd
