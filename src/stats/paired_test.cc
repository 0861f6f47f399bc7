// Tests of the paired tests, against published figures and exact counts.
#include "stats/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ks::stats {
namespace {

TEST(StudentT, AgreesWithTables) {
  EXPECT_NEAR(student_t_p(2.262, 9), 0.05, 1e-4);
  EXPECT_NEAR(student_t_p(12.706, 1), 0.05, 1e-4);
  EXPECT_NEAR(student_t_p(3.250, 9), 0.01, 1e-4);
  EXPECT_NEAR(student_t_p(0, 5), 1, 1e-12);
  EXPECT_NEAR(student_t_p(-2.042, 30), 0.05, 1e-4);
}

TEST(SignFlip, HasTheSmallestPThatSoManyPairsAllow) {
  for (const int pairs : {5, 6, 8, 10}) {
    const std::vector<double> same(static_cast<size_t>(pairs), 0.3);
    EXPECT_DOUBLE_EQ(sign_flip_p(same), 2 / std::pow(2.0, pairs)) << pairs;
  }
}

TEST(SignFlip, CountsByHandOnThreePairs) {
  // Sums of the eight sign patterns of 1, 2, 4: 7, 5, 3, 1 and their negatives; the seen sum is 3.
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{1, -2, 4}), 6.0 / 8);
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{}), 1);
  EXPECT_DOUBLE_EQ(sign_flip_p(std::vector<double>{0, 0, 0}), 1);
}

TEST(SignFlip, DrawsWhereThereAreTooManyPairsToCount) {
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) values.push_back(i % 2 == 0 ? 0.1 : -0.1);
  EXPECT_NEAR(sign_flip_p(values), 1, 1e-9);
  for (auto& value : values) value = 0.1;
  EXPECT_LT(sign_flip_p(values), 1e-4);
}

TEST(PairedTest, GivesMeanIntervalAndBothTests) {
  const auto test = paired_test(std::vector<double>{0.1, 0.3, 0.2, 0.4, 0.2, 0.3});
  EXPECT_EQ(test.pairs, 6);
  EXPECT_NEAR(test.mean, 0.25, 1e-12);
  EXPECT_NEAR(test.sd, 0.104881, 1e-6);
  EXPECT_NEAR(test.t.low, 0.25 - 2.5706 * 0.104881 / std::sqrt(6), 1e-3);
  EXPECT_NEAR(test.flip_p, 0.03125, 1e-12);
  EXPECT_LT(test.t_p, 0.01);
}

TEST(PairedTest, SaysNothingOfOnePairAndIsExactWithoutSpread) {
  EXPECT_EQ(paired_test(std::vector<double>{0.5}).flip_p, 1);
  const auto equal = paired_test(std::vector<double>{0, 0, 0, 0});
  EXPECT_EQ(equal.t_p, 1);
  EXPECT_EQ(equal.flip_p, 1);
}

TEST(Power, IsTheSizeWithoutAnEffectAndGrowsWithIt) {
  EXPECT_NEAR(paired_power(0, 1, 10), 0.05, 0.015);
  // Noncentral t: effect one sd, ten pairs: 0.803.
  EXPECT_NEAR(paired_power(1, 1, 10), 0.803, 0.03);
  const auto test = paired_test(std::vector<double>{-1, 1, -1, 1, -1, 1, -1, 1, -1, 1});
  EXPECT_NEAR(test.detectable, 1.0 * test.sd, 0.06 * test.sd);
}

}  // namespace
}  // namespace ks::stats
