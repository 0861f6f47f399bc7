// Applies a Symmetry to host tensors: to inputs as bytes, to expected outputs as floats. Operators use it in their
// tests, the oracle on every fresh input set. How it works: a symmetry is an index map for each axis and a factor for
// each column, so a tensor is moved row by row: find the old row, then gather its columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "operators/columns.h"
#include "operators/operator.h"

namespace ks::op {

/// How one tensor moves: element (i0, i1, …) of the new one is factor * old(source_0[i0], source_1[i1], …).
struct TensorMove {
  std::vector<std::vector<int32_t>> source;             ///< one an axis; empty: the identity
  std::vector<float> factor;                            ///< one a column; empty: all 1
  const std::vector<std::byte>* replacement = nullptr;  ///< the new contents outright
  bool moves_columns() const { return !source.empty() && !source.back().empty(); }
  bool is_identity() const;
};

/// The part of `symmetry` that concerns tensor `index`. Dies (KS_CHECK) where a map does not fit the tensor.
TensorMove move_of(const Problem& problem, int index, const Symmetry& symmetry);

/// The columns' part of a move, for rows of `dtype` (expected values are floats whatever the tensor is).
ColumnMover column_mover(core::Dtype dtype, const Tensor& tensor, const TensorMove& move);

/// Number of rows (products of all dimensions but the last) and of columns.
int64_t row_count(const Tensor& tensor);
int64_t column_count(const Tensor& tensor);

/// True if the elements lie in logical order with no gaps.
bool is_packed(const Tensor& tensor);

/// One row on its way: its number and element offset in the new tensor, and those of its source in the old one.
struct RowMove {
  int64_t row = 0, offset = 0, old_row = 0, old_offset = 0;
};

/// Walks rows [begin, end) of the new tensor in logical order.
class RowWalk {
 public:
  RowWalk(const Tensor& tensor, const TensorMove& move, int64_t begin);
  const RowMove& now() const { return now_; }
  void next();
  /// Indices of the row along each axis but the last.
  const std::vector<int64_t>& indices() const { return index_; }

 private:
  void place_outer();
  void place();
  int64_t source_of(size_t axis) const;
  const Tensor& tensor_;
  const TensorMove& move_;
  std::vector<int64_t> index_, dense_;
  RowMove outer_;  ///< what all axes but the innermost of the row contribute
  RowMove now_;
};

/// Moves the contents of tensor `index` from `from` to `to` (both Tensor::bytes long, not overlapping). Bytes between
/// rows are copied as they are.
void transform_tensor(const Problem& problem, int index, const Symmetry& symmetry, const std::byte* from, std::byte* to,
                      int threads = 1);

/// The expected values of tensor `index`, moved.
Expected::Rows transform_rows(const Problem& problem, int index, const Symmetry& symmetry, const Expected::Rows& rows);

/// All tensors of a problem moved: inputs, and what is expected of them.
Buffers transform_buffers(const Problem& problem, const Symmetry& symmetry, const Buffers& buffers);
Expected transform_expected(const Problem& problem, const Symmetry& symmetry, const Expected& expected);

}  // namespace ks::op
