#include "operators/output_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "operators/apply_symmetry.h"
#include "operators/parallel.h"
#include "operators/row_norms.h"

namespace ks::op {
namespace {

/// The error of one row, and whether it passes.
struct RowError {
  double error = 0;
  bool ok = true;
};

RowError judge_relative(const Tensor& tensor, const float* want, const void* got, size_t columns) {
  const RowNorms norms = row_norms(tensor.dtype, got, want, columns);
  if (!(norms.difference < std::numeric_limits<double>::infinity()))
    return {std::numeric_limits<double>::infinity(), false};
  // Squares of floats do not overflow in double, and a row of zeros allows no difference at all.
  if (norms.want == 0)
    return {norms.difference == 0 ? 0 : std::numeric_limits<double>::infinity(), norms.difference == 0};
  const double error = std::sqrt(norms.difference / norms.want);
  return {error, error <= tensor.limit};
}

RowError judge_absolute(const Tensor& tensor, const float* want, const void* got, size_t columns) {
  RowError row;
  for (size_t c = 0; c < columns; ++c) {
    const float value = core::load_element(got, tensor.dtype, c);
    if (value == want[c]) continue;  // equal infinities too
    double error = std::fabs(static_cast<double>(value) - static_cast<double>(want[c]));
    if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    row.error = std::max(row.error, error);
    row.ok = row.ok && error <= tensor.limit;
  }
  return row;
}

/// The column that differs most, for the message.
size_t worst_column(const Tensor& tensor, const float* want, const void* got, size_t columns) {
  size_t worst = 0;
  double most = -1;
  for (size_t c = 0; c < columns; ++c) {
    const float value = core::load_element(got, tensor.dtype, c);
    if (value == want[c]) continue;
    double difference = std::fabs(static_cast<double>(value) - static_cast<double>(want[c]));
    if (!std::isfinite(difference)) difference = std::numeric_limits<double>::infinity();
    if (difference > most) {
      most = difference;
      worst = c;
    }
  }
  return worst;
}

std::string describe(const Tensor& tensor, int64_t row, const RowError& error, const float* want, const void* got) {
  const auto columns = static_cast<size_t>(column_count(tensor));
  const size_t c = worst_column(tensor, want, got, columns);
  const bool relative = tensor.rule == OutputRule::kRelativeL2Row;
  const bool zero = relative && std::all_of(want, want + columns, [](float v) { return v == 0; });
  const float value = core::load_element(got, tensor.dtype, c);
  std::string text = fmt::format("{}: column {} is {:.6g}, expected {:.6g}", row_name(tensor, row), c, value, want[c]);
  if (zero) return text + " (this row must be exactly zero)";
  return text + fmt::format("; {} error {:.3g}, limit {:.3g}", relative ? "relative L2" : "absolute", error.error,
                            tensor.limit);
}

constexpr int64_t kRowsAhead = 6;

/// Compares a piece of the rows; each thread has one.
class Comparer {
 public:
  Comparer(const Tensor& tensor, const TensorMove& move, const Expected::Rows& expected, const std::byte* got,
           const std::byte* initial)
      : tensor_(tensor),
        move_(move),
        mover_(column_mover(core::Dtype::kF32, tensor, move)),
        expected_(expected),
        got_(got),
        initial_(initial) {
    columns_ = static_cast<size_t>(column_count(tensor));
    wanted_.resize(columns_);
  }

  RowComparison run(int64_t begin, int64_t end) {
    RowWalk walk(tensor_, move_, begin), ahead(tensor_, move_, begin);
    for (int64_t row = begin; row < std::min(begin + kRowsAhead, end); ++row) ahead.next();
    for (int64_t row = begin; row < end; ++row, walk.next()) {
      if (row + kRowsAhead < end) {
        prefetch(ahead.now());
        ahead.next();
      }
      compare(walk.now());
    }
    return result_;
  }
  double error_sum() const { return error_sum_; }
  int64_t finite_rows() const { return finite_rows_; }
  int64_t first_failure() const { return first_failure_; }

 private:
  /// Moved rows lie out of order, so the processor does not see the next one coming.
  void prefetch(const RowMove& next) const {
    const auto* want =
        reinterpret_cast<const std::byte*>(expected_.values.data() + static_cast<size_t>(next.old_row) * columns_);
    const std::byte* got = got_ + next.offset * static_cast<int64_t>(core::dtype_bytes(tensor_.dtype));
    for (size_t i = 0; i < columns_ * sizeof(float); i += 64) __builtin_prefetch(want + i);
    for (size_t i = 0; i < columns_ * core::dtype_bytes(tensor_.dtype); i += 64) __builtin_prefetch(got + i);
  }

  void compare(const RowMove& now) {
    const auto old = static_cast<size_t>(now.old_row);
    const std::byte* got = got_ + now.offset * static_cast<int64_t>(core::dtype_bytes(tensor_.dtype));
    if (!expected_.unchanged.empty() && expected_.unchanged[old] != 0) return check_unchanged(now, got);
    if (!expected_.known.empty() && expected_.known[old] == 0) return;
    const float* want = wanted_row(old);
    const RowError error = tensor_.rule == OutputRule::kRelativeL2Row ? judge_relative(tensor_, want, got, columns_)
                                                                      : judge_absolute(tensor_, want, got, columns_);
    ++result_.rows;
    result_.worst = std::max(result_.worst, error.error);
    if (std::isfinite(error.error)) {
      error_sum_ += error.error;
      ++finite_rows_;
    }
    if (!error.ok) fail(now.row, [&] { return describe(tensor_, now.row, error, want, got); });
  }

  void check_unchanged(const RowMove& now, const std::byte* got) {
    ++result_.rows;
    ++finite_rows_;
    const size_t bytes = columns_ * core::dtype_bytes(tensor_.dtype);
    if (std::memcmp(got, initial_ + (got - got_), bytes) == 0) return;
    result_.worst = std::numeric_limits<double>::infinity();
    fail(now.row, [&] { return row_name(tensor_, now.row) + " was changed, and this call must not touch it"; });
  }

  const float* wanted_row(size_t old) {
    const float* row = expected_.values.data() + old * columns_;
    if (mover_.is_identity()) return row;
    mover_.move(reinterpret_cast<const std::byte*>(row), reinterpret_cast<std::byte*>(wanted_.data()));
    return wanted_.data();
  }

  template <typename Text>
  void fail(int64_t row, Text text) {
    if (result_.failures++ > 0) return;
    first_failure_ = row;
    result_.where = text();
  }

  const Tensor& tensor_;
  const TensorMove& move_;
  ColumnMover mover_;
  const Expected::Rows& expected_;
  const std::byte* got_;
  const std::byte* initial_;
  size_t columns_ = 0;
  std::vector<float> wanted_;
  RowComparison result_;
  double error_sum_ = 0;
  int64_t finite_rows_ = 0, first_failure_ = -1;
};

}  // namespace

std::string row_name(const Tensor& tensor, int64_t row) {
  std::vector<int64_t> index;
  for (size_t axis = tensor.shape.empty() ? 0 : tensor.shape.size() - 1; axis-- > 0;) {
    index.insert(index.begin(), row % std::max<int64_t>(tensor.shape[axis], 1));
    row /= std::max<int64_t>(tensor.shape[axis], 1);
  }
  std::string text = tensor.name + "[";
  for (const int64_t i : index) text += std::to_string(i) + ", ";
  return text + ":]";
}

RowComparison compare_rows(const Problem& problem, int index, const Symmetry& symmetry, const Expected::Rows& expected,
                           const std::byte* got, const std::byte* initial, int threads) {
  const Tensor& tensor = problem.tensors.at(static_cast<size_t>(index));
  KS_CHECK(tensor.rule != OutputRule::kNone, "only outputs are compared");
  KS_CHECK(expected.unchanged.empty() || initial != nullptr, "rows that must not change need their initial bytes");
  KS_CHECK(static_cast<int64_t>(expected.values.size()) == row_count(tensor) * column_count(tensor),
           "expected values are dense over the tensor's shape");
  const TensorMove move = move_of(problem, index, symmetry);
  RowComparison total;
  double error_sum = 0;
  int64_t finite_rows = 0, first_failure = -1;
  std::mutex mutex;
  parallel_ranges(row_count(tensor), threads, [&](int64_t begin, int64_t end) {
    Comparer comparer(tensor, move, expected, got, initial);
    const RowComparison part = comparer.run(begin, end);
    const std::lock_guard lock(mutex);
    total.rows += part.rows;
    total.worst = std::max(total.worst, part.worst);
    total.failures += part.failures;
    error_sum += comparer.error_sum();
    finite_rows += comparer.finite_rows();
    if (part.failures > 0 && (first_failure < 0 || comparer.first_failure() < first_failure)) {
      first_failure = comparer.first_failure();
      total.where = part.where;
    }
  });
  if (finite_rows > 0) total.mean = error_sum / static_cast<double>(finite_rows);
  return total;
}

int64_t first_changed_gap(const Tensor& tensor, const std::byte* got, const std::byte* before) {
  if (is_packed(tensor) || tensor.bytes == 0) return -1;
  const size_t element = core::dtype_bytes(tensor.dtype);
  std::vector<bool> is_row(tensor.bytes, false);
  TensorMove identity;
  identity.source.resize(tensor.shape.size());
  RowWalk walk(tensor, identity, 0);
  const size_t row_bytes = static_cast<size_t>(column_count(tensor)) * element;
  for (int64_t row = 0, count = row_count(tensor); row < count; ++row, walk.next()) {
    const size_t start = static_cast<size_t>(walk.now().offset) * element;
    std::fill_n(is_row.begin() + static_cast<std::ptrdiff_t>(start), row_bytes, true);
  }
  for (size_t i = 0; i < tensor.bytes; ++i)
    if (!is_row[i] && got[i] != before[i]) return static_cast<int64_t>(i);
  return -1;
}

}  // namespace ks::op
