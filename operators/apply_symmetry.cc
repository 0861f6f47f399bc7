#include "operators/apply_symmetry.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "operators/parallel.h"

namespace ks::op {
namespace {

/// Rows of permuted heads lie out of order in memory, so the processor does not see the next one coming.
constexpr int64_t kRowsAhead = 6;

void prefetch_row(const std::byte* row, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(row + i);
}

}  // namespace

bool TensorMove::is_identity() const {
  if (replacement != nullptr || !factor.empty()) return false;
  for (const auto& axis : source)
    if (!axis.empty()) return false;
  return true;
}

int64_t column_count(const Tensor& tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.back();
}

int64_t row_count(const Tensor& tensor) {
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < tensor.shape.size(); ++axis) rows *= tensor.shape[axis];
  return column_count(tensor) == 0 ? 0 : rows;
}

bool is_packed(const Tensor& tensor) {
  int64_t stride = 1;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) return false;
    stride *= tensor.shape[axis];
  }
  return true;
}

TensorMove move_of(const Problem& problem, int index, const Symmetry& symmetry) {
  const Tensor& tensor = problem.tensors.at(static_cast<size_t>(index));
  TensorMove move;
  move.source.resize(tensor.shape.size());
  for (const auto& map : symmetry.axes) {
    if (map.tensor != index) continue;
    const auto axis = static_cast<size_t>(map.axis);
    KS_CHECK(axis < tensor.shape.size(), "a symmetry names axes that its tensor has");
    KS_CHECK(static_cast<int64_t>(map.source.size()) == tensor.shape[axis], "an axis map has an entry for each index");
    KS_CHECK(move.source[axis].empty(), "a symmetry gives at most one map for an axis");
    for (const int32_t i : map.source) KS_CHECK(i >= 0 && i < tensor.shape[axis], "an axis map stays inside its axis");
    move.source[axis] = map.source;
  }
  for (const auto& factor : symmetry.factors) {
    if (factor.tensor != index) continue;
    KS_CHECK(static_cast<int64_t>(factor.factor.size()) == column_count(tensor), "there is a factor for each column");
    KS_CHECK(move.factor.empty(), "a symmetry gives at most one list of factors for a tensor");
    move.factor = factor.factor;
  }
  for (const auto& replacement : symmetry.replacements) {
    if (replacement.tensor != index) continue;
    KS_CHECK(replacement.bytes.size() == tensor.bytes, "a replacement fills its tensor");
    move.replacement = &replacement.bytes;
  }
  return move;
}

ColumnMover column_mover(core::Dtype dtype, const Tensor& tensor, const TensorMove& move) {
  static const std::vector<int32_t> kIdentity;
  return {dtype, static_cast<size_t>(column_count(tensor)), move.moves_columns() ? move.source.back() : kIdentity,
          move.factor};
}

RowWalk::RowWalk(const Tensor& tensor, const TensorMove& move, int64_t begin) : tensor_(tensor), move_(move) {
  const size_t axes = tensor.shape.empty() ? 0 : tensor.shape.size() - 1;
  index_.assign(axes, 0);
  dense_.assign(axes, 1);
  for (size_t axis = axes; axis-- > 1;) dense_[axis - 1] = dense_[axis] * tensor.shape[axis];
  int64_t rest = begin;
  for (size_t axis = axes; axis-- > 0;) {
    if (tensor.shape[axis] == 0) return;
    index_[axis] = rest % tensor.shape[axis];
    rest /= tensor.shape[axis];
  }
  now_.row = begin;
  place_outer();
  place();
}

int64_t RowWalk::source_of(size_t axis) const {
  const auto& source = move_.source[axis];
  return source.empty() ? index_[axis] : source[static_cast<size_t>(index_[axis])];
}

void RowWalk::place_outer() {
  outer_ = RowMove{};
  for (size_t axis = 0; axis + 1 < index_.size(); ++axis) {
    const int64_t old = source_of(axis);
    outer_.offset += index_[axis] * tensor_.strides[axis];
    outer_.old_row += old * dense_[axis];
    outer_.old_offset += old * tensor_.strides[axis];
  }
}

void RowWalk::place() {
  now_.offset = now_.old_row = now_.old_offset = 0;
  if (index_.empty()) return;
  const size_t inner = index_.size() - 1;
  const int64_t old = source_of(inner);
  now_.offset = outer_.offset + index_[inner] * tensor_.strides[inner];
  now_.old_row = outer_.old_row + old;
  now_.old_offset = outer_.old_offset + old * tensor_.strides[inner];
}

void RowWalk::next() {
  ++now_.row;
  for (size_t axis = index_.size(); axis-- > 0;) {
    if (++index_[axis] < tensor_.shape[axis]) break;
    index_[axis] = 0;
  }
  // The innermost index came back to 0: another one moved.
  if (!index_.empty() && index_.back() == 0) place_outer();
  place();
}

void transform_tensor(const Problem& problem, int index, const Symmetry& symmetry, const std::byte* from, std::byte* to,
                      int threads) {
  const Tensor& tensor = problem.tensors.at(static_cast<size_t>(index));
  const TensorMove move = move_of(problem, index, symmetry);
  if (move.replacement != nullptr) {
    if (tensor.bytes > 0) std::memcpy(to, move.replacement->data(), tensor.bytes);
    return;
  }
  if (tensor.bytes == 0) return;
  if (move.is_identity() || !is_packed(tensor)) std::memcpy(to, from, tensor.bytes);
  if (move.is_identity()) return;
  const ColumnMover columns = column_mover(tensor.dtype, tensor, move);
  const auto element = static_cast<int64_t>(core::dtype_bytes(tensor.dtype));
  parallel_ranges(row_count(tensor), threads, [&](int64_t begin, int64_t end) {
    RowWalk walk(tensor, move, begin), ahead(tensor, move, begin);
    for (int64_t row = begin; row < std::min(begin + kRowsAhead, end); ++row) ahead.next();
    for (int64_t row = begin; row < end; ++row, walk.next()) {
      if (row + kRowsAhead < end) {
        prefetch_row(from + ahead.now().old_offset * element, columns.row_bytes());
        ahead.next();
      }
      columns.move_past_cache(from + walk.now().old_offset * element, to + walk.now().offset * element);
    }
    finish_moves_past_cache();
  });
}

Expected::Rows transform_rows(const Problem& problem, int index, const Symmetry& symmetry, const Expected::Rows& rows) {
  const Tensor& tensor = problem.tensors.at(static_cast<size_t>(index));
  const TensorMove move = move_of(problem, index, symmetry);
  if (rows.values.empty() || move.is_identity()) return rows;
  Expected::Rows moved = rows;
  const auto columns = static_cast<size_t>(column_count(tensor));
  RowWalk walk(tensor, move, 0);
  for (int64_t r = 0, count = row_count(tensor); r < count; ++r, walk.next()) {
    const auto row = static_cast<size_t>(r), old = static_cast<size_t>(walk.now().old_row);
    for (size_t c = 0; c < columns; ++c) {
      const size_t source = move.moves_columns() ? static_cast<size_t>(move.source.back()[c]) : c;
      const float value = rows.values[old * columns + source];
      moved.values[row * columns + c] = move.factor.empty() ? value : value * move.factor[c];
    }
    if (!rows.known.empty()) moved.known[row] = rows.known[old];
    if (!rows.unchanged.empty()) moved.unchanged[row] = rows.unchanged[old];
  }
  return moved;
}

Buffers transform_buffers(const Problem& problem, const Symmetry& symmetry, const Buffers& buffers) {
  Buffers moved;
  for (size_t t = 0; t < buffers.size(); ++t) {
    moved.emplace_back(buffers[t].size());
    transform_tensor(problem, static_cast<int>(t), symmetry, buffers[t].data(), moved[t].data());
  }
  return moved;
}

Expected transform_expected(const Problem& problem, const Symmetry& symmetry, const Expected& expected) {
  Expected moved;
  for (size_t t = 0; t < expected.tensors.size(); ++t)
    moved.tensors.push_back(transform_rows(problem, static_cast<int>(t), symmetry, expected.tensors[t]));
  return moved;
}

}  // namespace ks::op
