// Compares what a call left in an output with what is expected, row by row, under the tensor's OutputRule. Made to run
// at memory speed: rows of float or bfloat16 that lie contiguous are compared in vectors, a symmetry is applied to the
// expected values on the fly.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "operators/operator.h"

namespace ks::op {

/// How the rows of one output compare with what they should be.
struct RowComparison {
  int64_t rows = 0;      ///< rows compared
  double worst = 0;      ///< largest row error: relative L2 or absolute; infinite where a row is not finite
  double mean = 0;       ///< mean of the finite row errors
  int64_t failures = 0;  ///< rows past the limit, not finite, or changed where they must be exact or untouched
  std::string where;     ///< the first failing row in words: "output[2, 17, 3, :]: …"
};

/// Compares `got`, the bytes of tensor `index`, with `expected` as `symmetry` moves it. For an in-out tensor `initial`
/// holds the bytes before the call (already moved): rows flagged `unchanged` must equal them.
RowComparison compare_rows(const Problem& problem, int index, const Symmetry& symmetry, const Expected::Rows& expected,
                           const std::byte* got, const std::byte* initial = nullptr, int threads = 1);

/// The first byte between the rows of a tensor that differs from `before` (the tensor's bytes as they were), or -1 if
/// there is none; memory that a call was not given to write.
int64_t first_changed_gap(const Tensor& tensor, const std::byte* got, const std::byte* before);

/// "output[2, 17, 3, :]": a row in words.
std::string row_name(const Tensor& tensor, int64_t row);

}  // namespace ks::op
