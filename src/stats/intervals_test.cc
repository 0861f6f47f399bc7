#include "stats/intervals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"

namespace ks::stats {
namespace {

/// Roughly normal, from a seed: the sum of twelve uniforms.
double noise(base::Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

TEST(Median, IsTheMeanOfTheMiddleTwoOfAnEvenCount) {
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{9, 1, 5}), 5);
}

TEST(PairedInterval, CoversTheTruthAboutNineteenTimesInTwenty) {
  base::Random random(11);
  for (int count : {4, 8, 20}) {
    int covered = 0;
    for (int trial = 0; trial < 2000; ++trial) {
      std::vector<double> differences;
      for (int i = 0; i < count; ++i) differences.push_back(0.3 + noise(random));
      const Interval interval = paired_interval(differences);
      covered += interval.low <= 0.3 && 0.3 <= interval.high;
    }
    EXPECT_GT(covered, 2000 * 0.935) << count;
    EXPECT_LT(covered, 2000 * 0.98) << count;
  }
}

TEST(PairedInterval, IsNotMovedFarByOneDisturbedSample) {
  std::vector<double> differences = {0.01,   0.012, 0.009, 0.011, 0.010,  0.0105, 0.0095,
                                     0.0102, 0.010, 0.011, 0.011, 0.0098, 0.0101, 5.0};
  const Interval interval = paired_interval(differences);
  EXPECT_NEAR(interval.value, 0.01, 0.002);
  EXPECT_LT(interval.high, 0.02);
}

TEST(PairedInterval, OfOneSampleIsUnbounded) {
  const Interval interval = paired_interval(std::vector<double>{0.5});
  EXPECT_TRUE(std::isinf(interval.low) && std::isinf(interval.high));
}

TEST(StudentT, MatchesThePrintedTable) {
  EXPECT_NEAR(student_t975(15), 2.131, 0.002);
  EXPECT_NEAR(student_t975(30), 2.042, 0.002);
}

TEST(GeometricMean, IgnoresNoScenarioEvenIfOneIsSlow) {
  const std::vector<Interval> ratios = {{1, 1, 1}, {1, 1, 1}, {0.001, 0.001, 0.001}};
  EXPECT_NEAR(geometric_mean(ratios).value, 0.1, 1e-12);
}

TEST(GeometricMean, ItsIntervalShrinksWithTheNumberOfScenarios) {
  const std::vector<Interval> few(4, {1, 0.9, 1.1}), many(64, {1, 0.9, 1.1});
  EXPECT_LT(geometric_mean(many).high, geometric_mean(few).high);
  EXPECT_NEAR(std::log(geometric_mean(few).high), std::log(1.1) / 2, 1e-12);
}

}  // namespace
}  // namespace ks::stats
