// Random data for tensors, fast: normal values from a table of quantiles indexed by counter-based random bits, and rows
// of floats rounded into any element type. Equal on every machine for equal seeds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace ks::op {

/// Writes `count` values that are distributed as a standard normal cut at 4.2 sigma; a pure function of `seed`.
void fill_normal(uint64_t seed, size_t count, float* out);

/// Rounds floats into `count` elements that lie one after the other. e4m3 saturates at +-448; its rounding goes through
/// bfloat16, so it may differ from the nearest in the last bit: for making data, not for reference values.
void store_row(const float* from, core::Dtype dtype, size_t count, void* to);

/// Fills `count` elements with garbage that is finite and large for the type, or with NaN.
void fill_garbage(uint64_t seed, core::Dtype dtype, size_t count, bool nan, void* to);

/// Largest magnitude that recipes use for a type.
double type_ceiling(core::Dtype dtype);

}  // namespace ks::op
