// Tests of the reference: the plain one against cases worked out by hand, the fast one against the plain one.
#include "operators/attention_fwd/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "operators/attention_fwd/rotary.h"
#include "operators/attention_fwd/test_scenarios.h"
#include "operators/attention_fwd/tile_math.h"

namespace ks::attention_fwd {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A small problem whose tensors the test writes by name.
struct Bench {
  explicit Bench(const std::map<std::string, std::string>& values)
      : problem(make_problem(made_row(values))), buffers(inputs_of(problem, "mixture", 1)) {}

  void set(const std::string& name, const std::vector<float>& values) {
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      if (problem.tensors[t].name != name) continue;
      ASSERT_EQ(buffers[t].size(), values.size() * core::dtype_bytes(problem.tensors[t].dtype)) << name;
      for (size_t i = 0; i < values.size(); ++i)
        core::store_element(buffers[t].data(), problem.tensors[t].dtype, i, values[i]);
      return;
    }
    FAIL() << "no tensor " << name;
  }
  RowAnswer row(int64_t b, int64_t i, int64_t h) const { return reference_row(View(problem, buffers), b, i, h); }

  op::Problem problem;
  op::Buffers buffers;
};

/// One column of keys and values, scale 1.
Bench tiny(std::map<std::string, std::string> values) {
  values.insert({"D/Dv", "1/1"});
  values.insert({"note", "scale 1"});
  return Bench(values);
}

TEST(ReferenceRow, WeighsTwoKeysAsTheDefinitionSays) {
  Bench bench = tiny({{"Sq", "1"}, {"Sk", "2"}});
  bench.set("query", {1});
  bench.set("key", {0, std::log(3.0f)});
  bench.set("value", {4, 8});
  const auto answer = bench.row(0, 0, 0);
  EXPECT_NEAR(answer.output[0], 4 * 0.25 + 8 * 0.75, 1e-6);
  EXPECT_NEAR(answer.lse, std::log(4.0), 1e-7);
}

TEST(ReferenceRow, GivesZeroAndMinusInfinityWhereNoKeyIsVisible) {
  Bench bench = tiny({{"Sq", "3"}, {"Sk", "1"}, {"mask", "causal"}});
  bench.set("value", {5});
  for (const int64_t i : {0, 1}) {
    EXPECT_EQ(bench.row(0, i, 0).output[0], 0);
    EXPECT_EQ(bench.row(0, i, 0).lse, -kInfinity);
  }
  EXPECT_EQ(bench.row(0, 2, 0).output[0], 5);
}

TEST(ReferenceRow, GivesTheSinkAsLseWhereNoKeyIsVisible) {
  Bench bench = tiny({{"Sq", "2"}, {"Sk", "1"}, {"mask", "causal sink"}});
  bench.set("sinks", {-1.5f});
  EXPECT_EQ(bench.row(0, 0, 0).output[0], 0);
  EXPECT_EQ(bench.row(0, 0, 0).lse, -1.5);
}

TEST(ReferenceRow, CountsTheSinkInTheDenominatorOnly) {
  Bench bench = tiny({{"Sq", "1"}, {"Sk", "1"}, {"mask", "full sink"}});
  bench.set("query", {0});
  bench.set("value", {6});
  bench.set("sinks", {std::log(2.0f)});
  EXPECT_NEAR(bench.row(0, 0, 0).output[0], 6.0 / 3, 1e-6);
  EXPECT_NEAR(bench.row(0, 0, 0).lse, std::log(3.0), 1e-7);
}

TEST(ReferenceRow, CapsScores) {
  Bench bench = tiny({{"Sq", "1"}, {"Sk", "2"}, {"mask", "full cap10"}});
  bench.set("query", {1});
  bench.set("key", {0, 1000});
  bench.set("value", {0, 1});
  EXPECT_NEAR(bench.row(0, 0, 0).lse, std::log(1 + std::exp(10.0)), 1e-7);
  bench.set("key", {0, 10});
  EXPECT_NEAR(bench.row(0, 0, 0).lse, std::log(1 + std::exp(10 * std::tanh(1.0))), 1e-7);
}

TEST(ReferenceRow, AlignsCausalAtTheBottomRight) {
  Bench bench = tiny({{"Sq", "2"}, {"Sk", "4"}, {"mask", "causal"}});
  bench.set("query", {0, 0});
  bench.set("value", {3, 6, 9, 100});
  EXPECT_NEAR(bench.row(0, 0, 0).output[0], 6, 1e-12);
  EXPECT_NEAR(bench.row(0, 1, 0).output[0], 118.0 / 4, 1e-12);
}

TEST(ReferenceRow, HoldsWindowsOnBothSides) {
  Bench bench = tiny({{"Sq", "5"}, {"Sk", "5"}, {"mask", "win(1,1)"}});
  bench.set("query", {0, 0, 0, 0, 0});
  bench.set("value", {1, 2, 4, 8, 16});
  EXPECT_NEAR(bench.row(0, 0, 0).output[0], 3.0 / 2, 1e-12);
  EXPECT_NEAR(bench.row(0, 2, 0).output[0], 14.0 / 3, 1e-12);
  EXPECT_NEAR(bench.row(0, 4, 0).output[0], 24.0 / 2, 1e-12);
}

TEST(ReferenceRow, LetsAWindowBeLongerThanTheSequence) {
  const std::map<std::string, std::string> shape = {{"Sq", "9"}, {"Sk", "9"}};
  auto causal = shape, window = shape;
  causal["mask"] = "causal";
  window["mask"] = "win(4095,0)";
  const Bench a(causal), b(window);
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(a.row(0, i, 0).output, b.row(0, i, 0).output);
}

TEST(ReferenceRow, SharesKvHeadsAmongTheirGroup) {
  Bench bench = tiny({{"Hq/Hkv", "4/2"}, {"Sq", "1"}, {"Sk", "1"}});
  bench.set("value", {10, 20});
  EXPECT_EQ(bench.row(0, 0, 0).output[0], 10);
  EXPECT_EQ(bench.row(0, 0, 1).output[0], 10);
  EXPECT_EQ(bench.row(0, 0, 2).output[0], 20);
  EXPECT_EQ(bench.row(0, 0, 3).output[0], 20);
}

TEST(ReferenceRow, KeepsPackedMembersApart) {
  Bench bench = tiny({{"B", "3"}, {"Sq", "1,0,1"}, {"Sk", "1,2,0"}, {"layout", "varlen"}});
  bench.set("value", {7, 50, 60});
  EXPECT_EQ(bench.row(0, 0, 0).output[0], 7);
  EXPECT_EQ(bench.row(2, 0, 0).output[0], 0);  // no key at all
  EXPECT_EQ(bench.row(2, 0, 0).lse, -kInfinity);
}

TEST(ReferenceRow, FollowsThePageTable) {
  Bench bench = tiny({{"Sq", "1"}, {"Sk", "3"}, {"layout", "paged2"}});
  bench.set("query", {0});
  ASSERT_EQ(shape_of(bench.problem).page_count, 3);
  bench.set("page_table", {2, 0});
  bench.set("value", {30, 999, 999, 999, 10, 20});  // pages 0, 1, 2
  EXPECT_NEAR(bench.row(0, 0, 0).output[0], 20, 1e-12);
}

TEST(ReferenceRow, SkipsLeftPadding) {
  Bench bench = tiny({{"Sq", "1"}, {"Sk", "4"}, {"layout", "contiguous cache + leftpad"}});
  bench.set("query", {0});
  bench.set("leftpad", {2});
  bench.set("value", {999, 999, 4, 6});
  EXPECT_NEAR(bench.row(0, 0, 0).output[0], 5, 1e-12);
  EXPECT_NEAR(bench.row(0, 0, 0).lse, std::log(2.0), 1e-12);
}

TEST(ReferenceRow, AppliesDescalesOfItsMemberAndHead) {
  Bench bench = tiny({{"dtype", "e4m3"},
                      {"B", "2"},
                      {"Hq/Hkv", "2/2"},
                      {"Sq", "1"},
                      {"Sk", "2"},
                      {"layout", "dense"},
                      {"note", "scale 1, random descale (B,Hkv)"}});
  bench.set("query", {1, 1, 1, 1});
  bench.set("key", {0, 0, 1, 1, 0, 0, 1, 1});  // [batch, key, head]
  bench.set("value", {0, 0, 1, 1, 0, 0, 1, 1});
  bench.set("query_descale", {1, 2, 3, 4});
  bench.set("key_descale", {0.5f, 0.5f, 0.25f, 0.25f});
  bench.set("value_descale", {1, 10, 100, 1000});
  const auto expected = [](double score, double scale) { return scale * std::exp(score) / (1 + std::exp(score)); };
  EXPECT_NEAR(bench.row(0, 0, 0).output[0], expected(0.5, 1), 1e-6);
  EXPECT_NEAR(bench.row(0, 0, 1).output[0], expected(1.0, 10), 1e-5);
  EXPECT_NEAR(bench.row(1, 0, 0).output[0], expected(0.75, 100), 1e-4);
  EXPECT_NEAR(bench.row(1, 0, 1).output[0], expected(1.0, 1000), 1e-3);
  EXPECT_NEAR(bench.row(1, 0, 1).lse, std::log(1 + std::exp(1.0)), 1e-7);
}

TEST(Rotary, TurnsPairsByTheAngleOfTheirPosition) {
  for (const bool halves : {true, false}) {
    Bench bench({{"D/Dv", "6/1"},
                 {"note", "scale 1"},
                 {"Sq", "1"},
                 {"Sk", "2"},
                 {"layout", std::string("contiguous cache append + rotary ") + (halves ? "4" : "interleaved 4")}});
    bench.set("rotary_cos", {1, 1, 0, -1});  // position 1: a quarter turn, a half turn
    bench.set("rotary_sin", {0, 0, 1, 0});
    bench.set("new_key", {1, 2, 3, 4, 5, 6});
    double row[] = {1, 2, 3, 4, 5, 6};
    rotate_row(View(bench.problem, bench.buffers), 1, row);
    // By halves the pairs are (1, 3) and (2, 4); interleaved (1, 2) and (3, 4).
    const std::vector<double> want =
        halves ? std::vector<double>{-3, -2, 1, -4, 5, 6} : std::vector<double>{-2, 1, -3, -4, 5, 6};
    EXPECT_EQ(std::vector<double>(row, row + 6), want);
    const auto after = append_keys(bench.problem, bench.buffers);
    const View view(bench.problem, after);
    for (size_t c = 0; c < 6; ++c)
      EXPECT_EQ(core::load_element(view.key, view.kv_dtype(), 6 + c), want[c]) << c;  // key 1 of the only member
  }
}

TEST(Append, AttendsOverOldAndNewKeysAndTouchesNothingElse) {
  Bench bench = tiny({{"B", "2"}, {"Sq", "1"}, {"Sk", "3"}, {"layout", "contiguous cache append"}});
  bench.set("query", {0, 0});
  bench.set("key_lengths", {0, 2});
  bench.set("value", {-1, -1, -1, 3, 6, -1});
  bench.set("new_value", {5, 9});
  bench.set("new_key", {1, 2});
  const auto expected = solve(bench.problem, bench.buffers, {}, 1);
  const auto at = index_tensors(bench.problem);
  const auto& output = expected.tensors[static_cast<size_t>(at.output)].values;
  EXPECT_NEAR(output[0], 5, 1e-6);
  EXPECT_NEAR(output[1], 6, 1e-6);
  const auto& value = expected.tensors[static_cast<size_t>(at.value)];
  EXPECT_EQ(value.unchanged, (std::vector<uint8_t>{0, 1, 1, 1, 1, 0}));
  EXPECT_EQ(value.values[0], 5);
  EXPECT_EQ(value.values[5], 9);
  EXPECT_EQ(expected.tensors[static_cast<size_t>(at.key)].values[5], 2);
}

TEST(TileMath, ExponentialsAreExactToTheLastDigits) {
  std::vector<double> x(1024);
  for (size_t i = 0; i < x.size(); ++i) x[i] = -0.6 * static_cast<double>(i) + 0.123;
  auto y = x;
  double want_sum = 0;
  const double sum = exponentials(y.data(), 1024, 0.123);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(x[i] - 0.123);
    want_sum += want;
    ASSERT_NEAR(y[i], want, 4e-15 * want + 1e-300) << x[i];
  }
  EXPECT_NEAR(sum, want_sum, 1e-14);
  std::vector<double> masked(8, -1e300);
  EXPECT_EQ(exponentials(masked.data(), 8, 3.0), 0);
  EXPECT_EQ(masked[0], 0);
}

TEST(TileMath, CapsLikeTheHyperbolicTangent) {
  std::vector<double> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 3.0 * (static_cast<double>(i) - 128);
  auto y = x;
  cap_scores(y.data(), 256, 50);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], 50 * std::tanh(x[i] / 50), 1e-12);
}

TEST(TileMath, MultipliesLikeThreeLoops) {
  const int64_t rows = 8, inner = 13, columns = 24;
  std::vector<double> a(104), b(312), c(192, 0.5), want(192, 0.5);
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<double>(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = std::cos(static_cast<double>(i));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t k = 0; k < inner; ++k)
        want[static_cast<size_t>(i * columns + j)] +=
            a[static_cast<size_t>(i * inner + k)] * b[static_cast<size_t>(k * columns + j)];
  multiply_add({c.data(), columns}, {a.data(), inner}, {b.data(), columns}, rows, inner, columns);
  for (size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], want[i], 1e-13);
}

void expect_near_row(const op::Expected& expected, const View& view, int64_t b, int64_t i, int64_t h,
                     const std::string& what) {
  const RowAnswer want = reference_row(view, b, i, h);
  const auto row = static_cast<size_t>(view.output_row(b, i, h));
  const auto& output = expected.tensors[static_cast<size_t>(view.index.output)].values;
  const float lse = expected.tensors[static_cast<size_t>(view.index.lse)].values[row];
  if (std::isinf(want.lse)) {
    ASSERT_EQ(lse, want.lse) << what;
  } else {
    ASSERT_NEAR(lse, want.lse, 2e-7 * (1 + std::fabs(want.lse))) << what;
  }
  double difference = 0, norm = 0;
  for (size_t c = 0; c < want.output.size(); ++c) {
    difference += std::pow(output[row * want.output.size() + c] - want.output[c], 2);
    norm += std::pow(want.output[c], 2);
  }
  ASSERT_LE(std::sqrt(difference), 1e-7 * std::sqrt(norm)) << what << " row " << b << "," << i << "," << h;
}

TEST(AllRows, AgreeWithThePlainReferenceOnTheCpuGrid) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    for (const char* recipe : {"mixture", "dominant_key"}) {
      const auto buffers = inputs_of(problem, recipe, 17, true);
      const auto expected = solve(problem, buffers, {}, 2);
      const auto after = shape_of(problem).new_keys > 0 ? append_keys(problem, buffers) : buffers;
      const View view(problem, after);
      base::Random random(3);
      for (int64_t b = 0; b < view.shape->batch; ++b) {
        const int64_t rows = view.rows[static_cast<size_t>(b)];
        if (rows == 0) continue;
        const auto any = static_cast<int64_t>(random.below(static_cast<uint64_t>(rows)));
        const auto h = static_cast<int64_t>(random.below(static_cast<uint64_t>(view.shape->query_heads)));
        for (const int64_t i : {int64_t{0}, any, rows - 1})
          expect_near_row(expected, view, b, i, h, row.name + " " + recipe);
      }
    }
  }
}

TEST(SampledRows, AreTheSameAsAllRowsAndAreFlagged) {
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    const auto buffers = inputs_of(problem, "mixture", 23);
    const auto all = solve(problem, buffers, {}, 2);
    const auto some = solve(problem, buffers, {op::Coverage::Kind::kSampledRows, 5, 40}, 2);
    const auto at = index_tensors(problem);
    const auto& a = all.tensors[static_cast<size_t>(at.output)];
    const auto& s = some.tensors[static_cast<size_t>(at.output)];
    const auto columns = static_cast<size_t>(shape_of(problem).value_dim);
    if (s.known.empty()) continue;  // fewer rows than asked for: all are computed
    int known = 0;
    for (size_t r = 0; r < s.known.size(); ++r) {
      if (s.known[r] == 0) continue;
      ++known;
      for (size_t c = 0; c < columns; ++c)
        ASSERT_NEAR(s.values[r * columns + c], a.values[r * columns + c],
                    1e-6 * std::fabs(a.values[r * columns + c]) + 1e-12)
            << row.name;
    }
    EXPECT_GE(known, 5) << row.name;
    EXPECT_LE(known, 40) << row.name;
    EXPECT_EQ(s.known, some.tensors[static_cast<size_t>(at.lse)].known);
  }
}

TEST(AllRows, DoNotDependOnTheNumberOfThreads) {
  const auto problem = make_problem(grid("cpu").scenarios[0]);
  const auto buffers = inputs_of(problem, "mixture", 2);
  const auto one = solve(problem, buffers, {}, 1), three = solve(problem, buffers, {}, 3);
  for (size_t t = 0; t < one.tensors.size(); ++t) EXPECT_EQ(one.tensors[t].values, three.tensors[t].values);
}

}  // namespace
}  // namespace ks::attention_fwd
