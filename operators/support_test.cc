// Tests of what operators share: moves, comparisons, cells, filling.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "operators/apply_symmetry.h"
#include "operators/cells.h"
#include "operators/columns.h"
#include "operators/fill.h"
#include "operators/output_rows.h"
#include "operators/parallel.h"
#include "operators/permutation.h"
#include "operators/row_norms.h"

namespace ks::op {
namespace {

/// A problem of one output tensor [2, 3, 5] with rows `stride` elements apart.
Problem small_problem(core::Dtype dtype, int64_t stride, OutputRule rule = OutputRule::kRelativeL2Row) {
  Tensor tensor;
  tensor.name = "output";
  tensor.role = Role::kOutput;
  tensor.dtype = dtype;
  tensor.shape = {2, 3, 5};
  tensor.strides = {3 * stride, stride, 1};
  tensor.bytes = static_cast<uint64_t>(6 * stride) * core::dtype_bytes(dtype);
  tensor.rule = rule;
  tensor.limit = 1e-3;
  Problem problem;
  problem.tensors = {tensor};
  return problem;
}

std::vector<std::byte> counted(const Problem& problem) {
  const Tensor& tensor = problem.tensors[0];
  const size_t element = core::dtype_bytes(tensor.dtype);
  std::vector<std::byte> bytes(tensor.bytes);
  for (size_t i = 0; i < bytes.size() / element; ++i)
    core::store_element(bytes.data(), tensor.dtype, i, static_cast<float>(i % 13) + 1.0f);
  return bytes;
}

Expected::Rows rows_of(const Problem& problem, const std::vector<std::byte>& bytes) {
  const Tensor& tensor = problem.tensors[0];
  Expected::Rows rows;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t c = 0; c < 5; ++c)
        rows.values.push_back(core::load_element(
            bytes.data(), tensor.dtype, static_cast<size_t>(b * tensor.strides[0] + r * tensor.strides[1] + c)));
  return rows;
}

Symmetry shuffled() {
  Symmetry symmetry;
  symmetry.axes = {{0, 0, {1, 0}}, {0, 1, {2, 0, 1}}, {0, 2, {4, 3, 0, 1, 2}}};
  symmetry.factors = {{0, {1, -1, 2, -0.5f, 1}}};
  return symmetry;
}

class EveryType : public ::testing::TestWithParam<core::Dtype> {};
INSTANTIATE_TEST_SUITE_P(Types, EveryType,
                         ::testing::Values(core::Dtype::kF32, core::Dtype::kF16, core::Dtype::kBf16,
                                           core::Dtype::kE4m3));

TEST_P(EveryType, MovesElementsAsTheDefinitionSays) {
  for (const int64_t stride : {5, 8}) {
    const Problem problem = small_problem(GetParam(), stride);
    const auto from = counted(problem);
    std::vector<std::byte> to(from.size());
    transform_tensor(problem, 0, shuffled(), from.data(), to.data());
    const std::vector<int> batch = {1, 0}, row = {2, 0, 1}, column = {4, 3, 0, 1, 2};
    const std::vector<float> factor = {1, -1, 2, -0.5f, 1};
    for (size_t b = 0; b < 2; ++b)
      for (size_t r = 0; r < 3; ++r)
        for (size_t c = 0; c < 5; ++c) {
          const auto at = [&](size_t i, size_t j, size_t k) { return (i * 3 + j) * static_cast<size_t>(stride) + k; };
          const float old = core::load_element(
              from.data(), GetParam(),
              at(static_cast<size_t>(batch[b]), static_cast<size_t>(row[r]), static_cast<size_t>(column[c])));
          EXPECT_EQ(core::load_element(to.data(), GetParam(), at(b, r, c)), factor[c] * old);
        }
  }
}

TEST_P(EveryType, MovedBytesEqualMovedExpectation) {
  const Problem problem = small_problem(GetParam(), 7);
  const auto from = counted(problem);
  std::vector<std::byte> to(from.size());
  transform_tensor(problem, 0, shuffled(), from.data(), to.data(), 3);
  const auto expected = rows_of(problem, from);
  EXPECT_EQ(transform_rows(problem, 0, shuffled(), expected).values, rows_of(problem, to).values);
  const auto comparison = compare_rows(problem, 0, shuffled(), expected, to.data(), nullptr, 2);
  EXPECT_EQ(comparison.failures, 0) << comparison.where;
  EXPECT_EQ(comparison.rows, 6);
  EXPECT_EQ(comparison.worst, 0);
}

TEST_P(EveryType, FindsOneWrongElementAndNamesItsRow) {
  const Problem problem = small_problem(GetParam(), 8);
  auto bytes = counted(problem);
  const auto expected = rows_of(problem, bytes);
  core::store_element(bytes.data(), GetParam(), (1 * 3 + 2) * 8 + 4, 100.0f);
  const auto comparison = compare_rows(problem, 0, {}, expected, bytes.data());
  EXPECT_EQ(comparison.failures, 1);
  EXPECT_NE(comparison.where.find("output[1, 2, :]: column 4 is"), std::string::npos) << comparison.where;
}

TEST(CompareRows, ReportsTheRelativeErrorOfTheRow) {
  const Problem problem = small_problem(core::Dtype::kF32, 5);
  auto bytes = counted(problem);
  auto expected = rows_of(problem, bytes);
  expected.values.assign(30, 0.0f);
  for (size_t r = 0; r < 6; ++r) expected.values[r * 5] = 4.0f;
  std::vector<float> got = expected.values;
  got[0] = 4.002f;  // error 5e-4
  got[5] = 4.4f;    // error 0.1, past the limit
  const auto comparison = compare_rows(problem, 0, {}, expected, reinterpret_cast<const std::byte*>(got.data()));
  EXPECT_EQ(comparison.failures, 1);
  EXPECT_NEAR(comparison.worst, 0.1, 1e-6);
  EXPECT_NEAR(comparison.mean, (0.1 + 5e-4) / 6, 1e-6);
}

TEST(CompareRows, WantsExactZerosWhereTheRowIsZero) {
  const Problem problem = small_problem(core::Dtype::kBf16, 5);
  std::vector<std::byte> bytes(problem.tensors[0].bytes);
  Expected::Rows expected;
  expected.values.assign(30, 0.0f);
  EXPECT_EQ(compare_rows(problem, 0, {}, expected, bytes.data()).failures, 0);
  core::store_element(bytes.data(), core::Dtype::kBf16, 7, 1e-30f);
  const auto comparison = compare_rows(problem, 0, {}, expected, bytes.data());
  EXPECT_EQ(comparison.failures, 1);
  EXPECT_NE(comparison.where.find("must be exactly zero"), std::string::npos);
  EXPECT_TRUE(std::isinf(comparison.worst));
}

TEST(CompareRows, RefusesNanWhateverIsExpected) {
  for (const auto rule : {OutputRule::kRelativeL2Row, OutputRule::kAbsolute}) {
    const Problem problem = small_problem(core::Dtype::kF32, 5, rule);
    auto bytes = counted(problem);
    const auto expected = rows_of(problem, bytes);
    core::store_element(bytes.data(), core::Dtype::kF32, 12, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(compare_rows(problem, 0, {}, expected, bytes.data()).failures, 1);
  }
}

TEST(CompareRows, MatchesInfinitiesByPositionAndSign) {
  const Problem problem = small_problem(core::Dtype::kF32, 5, OutputRule::kAbsolute);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Expected::Rows expected;
  expected.values.assign(30, -kInfinity);
  std::vector<float> got(30, -kInfinity);
  const auto failures = [&] {
    return compare_rows(problem, 0, {}, expected, reinterpret_cast<const std::byte*>(got.data())).failures;
  };
  EXPECT_EQ(failures(), 0);
  got[3] = kInfinity;
  EXPECT_EQ(failures(), 1);
  got[3] = -1e38f;
  EXPECT_EQ(failures(), 1);
}

TEST(CompareRows, SkipsRowsWithoutReferenceEvenWhenMoved) {
  const Problem problem = small_problem(core::Dtype::kF32, 5);
  const auto bytes = counted(problem);
  auto expected = rows_of(problem, bytes);
  expected.known = {0, 0, 0, 0, 1, 0};
  expected.values[0] += 100;  // not known, so not compared
  const auto moved = transform_rows(problem, 0, shuffled(), rows_of(problem, bytes));
  const auto comparison =
      compare_rows(problem, 0, shuffled(), expected, reinterpret_cast<const std::byte*>(moved.values.data()));
  EXPECT_EQ(comparison.rows, 1);
  EXPECT_EQ(comparison.failures, 0);
}

TEST(CompareRows, KeepsUnchangedRowsToTheirBytes) {
  const Problem problem = small_problem(core::Dtype::kF32, 5);
  const auto initial = counted(problem);
  auto expected = rows_of(problem, initial);
  expected.unchanged = {1, 1, 0, 1, 1, 1};
  auto got = initial;
  core::store_element(got.data(), core::Dtype::kF32, 5, 2.00001f);  // row 1: within any limit, but touched
  EXPECT_EQ(compare_rows(problem, 0, {}, expected, initial.data(), initial.data()).failures, 0);
  const auto comparison = compare_rows(problem, 0, {}, expected, got.data(), initial.data());
  EXPECT_EQ(comparison.failures, 1);
  EXPECT_NE(comparison.where.find("output[0, 1, :] was changed"), std::string::npos) << comparison.where;
}

TEST(RowNorms, AreRightWhateverTheMagnitudeAndTheLength) {
  for (const auto dtype : {core::Dtype::kF32, core::Dtype::kBf16})
    for (const float magnitude : {1e-30f, 1e-12f, 1.0f, 1e12f, 1e30f})
      for (const size_t columns : {7u, 16u, 40u, 128u}) {
        std::vector<float> want(columns);
        fill_normal(columns, columns, want.data());
        std::vector<std::byte> got(columns * core::dtype_bytes(dtype));
        double difference = 0, square = 0;
        for (size_t c = 0; c < columns; ++c) {
          want[c] *= magnitude;
          core::store_element(got.data(), dtype, c, want[c] * 1.01f);
          difference += std::pow(core::load_element(got.data(), dtype, c) - static_cast<double>(want[c]), 2);
          square += std::pow(static_cast<double>(want[c]), 2);
        }
        const RowNorms norms = row_norms(dtype, got.data(), want.data(), columns);
        EXPECT_NEAR(norms.want, square, 1e-5 * square);
        EXPECT_NEAR(norms.difference, difference, 1e-4 * difference) << core::dtype_name(dtype) << magnitude;
      }
}

TEST_P(EveryType, ColumnsMoveInRegistersAsOneByOne) {
  for (const size_t columns : {16u, 32u, 64u, 96u, 128u, 192u, 256u, 576u, 1024u, 2048u}) {
    base::Random random(columns);
    const auto source = random_permutation(columns, random);
    const auto sign = random_signs(columns, random);
    const size_t element = core::dtype_bytes(GetParam());
    std::vector<std::byte> from(columns * element), to(columns * element), past(columns * element);
    for (size_t c = 0; c < columns; ++c)
      core::store_element(from.data(), GetParam(), c, 1.0f + static_cast<float>(c % 7) / 8);
    const ColumnMover mover(GetParam(), columns, source, sign);
    mover.move(from.data(), to.data());
    mover.move_past_cache(from.data(), past.data());
    finish_moves_past_cache();
    EXPECT_EQ(to, past);
    for (size_t c = 0; c < columns; ++c)
      ASSERT_EQ(core::load_element(to.data(), GetParam(), c),
                sign[c] * core::load_element(from.data(), GetParam(), static_cast<size_t>(source[c])));
  }
}

TEST(Gaps, AreFoundWhenWritten) {
  const Problem problem = small_problem(core::Dtype::kF32, 8);
  const auto before = counted(problem);
  auto got = before;
  core::store_element(got.data(), core::Dtype::kF32, 2, -1);  // inside a row
  EXPECT_EQ(first_changed_gap(problem.tensors[0], got.data(), before.data()), -1);
  core::store_element(got.data(), core::Dtype::kF32, 14, -1);  // row 1 is elements 8 to 12
  const auto found = first_changed_gap(problem.tensors[0], got.data(), before.data());
  EXPECT_GE(found, 56);
  EXPECT_LT(found, 60);
}

TEST(Fill, NormalValuesHaveMeanZeroAndUnitVariance) {
  std::vector<float> values(100003);
  fill_normal(42, values.size(), values.data());
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1, 0.02);
  std::vector<float> again(values.size());
  fill_normal(42, again.size(), again.data());
  EXPECT_EQ(values, again);
  fill_normal(43, again.size(), again.data());
  EXPECT_NE(values, again);
}

TEST(Fill, GarbageIsFiniteOrNanAsAsked) {
  for (const auto dtype : {core::Dtype::kF32, core::Dtype::kF16, core::Dtype::kBf16, core::Dtype::kE4m3}) {
    std::vector<std::byte> bytes(64 * core::dtype_bytes(dtype));
    fill_garbage(7, dtype, 64, false, bytes.data());
    for (size_t i = 0; i < 64; ++i) {
      const float value = core::load_element(bytes.data(), dtype, i);
      EXPECT_TRUE(std::isfinite(value));
      EXPECT_GE(std::fabs(value), 0.2 * type_ceiling(dtype));
    }
    fill_garbage(7, dtype, 64, true, bytes.data());
    for (size_t i = 0; i < 64; ++i) EXPECT_TRUE(std::isnan(core::load_element(bytes.data(), dtype, i)));
  }
}

TEST(Fill, StoredRowsAreTheNearestValues) {
  std::vector<float> values(1000);
  fill_normal(5, values.size(), values.data());
  for (const auto dtype : {core::Dtype::kF32, core::Dtype::kF16, core::Dtype::kBf16}) {
    std::vector<std::byte> fast(values.size() * 4), plain(values.size() * 4);
    store_row(values.data(), dtype, values.size(), fast.data());
    for (size_t i = 0; i < values.size(); ++i) core::store_element(plain.data(), dtype, i, values[i]);
    EXPECT_EQ(fast, plain) << core::dtype_name(dtype);
  }
}

TEST(Permutation, HoldsEachIndexOnceAndItsInverseUndoesIt) {
  base::Random random(9);
  const auto order = random_permutation(257, random);
  EXPECT_EQ(std::set<int32_t>(order.begin(), order.end()).size(), 257u);
  const auto inverse = inverse_permutation(order);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(inverse[static_cast<size_t>(order[i])], static_cast<int32_t>(i));
}

TEST(Parallel, CoversEveryIndexOnceAndRethrows) {
  std::vector<std::atomic<int>> hits(1000);
  parallel_ranges(1000, 7, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
  });
  parallel_tasks(1000, 3, [&](int64_t i) { ++hits[static_cast<size_t>(i)]; });
  for (const auto& hit : hits) EXPECT_EQ(hit.load(), 2);
  parallel_ranges(0, 4, [](int64_t begin, int64_t end) { EXPECT_EQ(begin, end); });
  EXPECT_THROW(parallel_tasks(5, 2, [](int64_t) { throw Error("from a thread"); }), Error);
}

TEST(Cells, ErrorsNameOriginColumnAndText) {
  core::Scenario scenario;
  scenario.origin = "grid.tsv:7";
  scenario.values = {{"B", "many"}, {"heads", "32"}};
  const auto message = [&](auto action) -> std::string {
    try {
      action();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message([&] { parse_number(scenario, "B", cell(scenario, "B"), 1, 9); }),
            "grid.tsv:7: column \"B\": \"many\" is not a whole number");
  EXPECT_EQ(message([&] { parse_number(scenario, "B", "10", 1, 9); }),
            "grid.tsv:7: column \"B\": 10 is out of range: 1 to 9");
  EXPECT_EQ(message([&] { parse_pair(scenario, "heads", 1, 9); }),
            "grid.tsv:7: column \"heads\": \"32\" must be two numbers, as 32/8");
  EXPECT_NE(message([&] { cell(scenario, "Sq"); }).find("no such column"), std::string::npos);
}

}  // namespace
}  // namespace ks::op
