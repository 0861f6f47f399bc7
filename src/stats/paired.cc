#include "stats/paired.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "base/hash.h"

namespace ks::stats {
namespace {

constexpr int kDraws = 100'000, kPowerDraws = 4000;

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double sd_of(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

/// Continued fraction of the incomplete beta function (modified Lentz).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m < 300; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    result *= d * c;
    if (std::abs(d * c - 1) < 1e-14) break;
  }
  return result;
}

/// The regularised incomplete beta function.
double beta_share(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double normal_draw(base::Random& random) {
  const double u = 1 - random.uniform(), v = random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

double exact_flip_p(std::span<const double> differences, double seen) {
  const auto count = uint64_t{1} << differences.size();
  uint64_t as_far = 0;
  for (uint64_t signs = 0; signs < count; ++signs) {
    double sum = 0;
    for (size_t i = 0; i < differences.size(); ++i) sum += (signs >> i & 1) != 0 ? -differences[i] : differences[i];
    as_far += std::abs(sum) >= seen;
  }
  return static_cast<double>(as_far) / static_cast<double>(count);
}

}  // namespace

double sign_flip_p(std::span<const double> differences) {
  if (differences.empty()) return 1;
  double sum = 0, size = 0;
  for (const double value : differences) sum += value, size += std::abs(value);
  // Equal sums that differ by rounding count as equal.
  const double seen = std::abs(sum) - 1e-12 * size;
  if (differences.size() <= kExactPairs) return exact_flip_p(differences, seen);
  base::Random random(differences.size());
  int as_far = 1;
  for (int draw = 0; draw < kDraws; ++draw) {
    double flipped = 0;
    for (const double value : differences) flipped += (random.next() & 1) != 0 ? -value : value;
    as_far += std::abs(flipped) >= seen;
  }
  return static_cast<double>(as_far) / (kDraws + 1);
}

double student_t_p(double t, int degrees_of_freedom) {
  if (degrees_of_freedom < 1) return 1;
  const double n = degrees_of_freedom;
  return beta_share(n / 2, 0.5, n / (n + t * t));
}

double paired_power(double mean, double sd, int pairs) {
  if (pairs < 2) return 0;
  if (sd <= 0) return mean == 0 ? 0 : 1;
  base::Random random(1);
  int found = 0;
  std::vector<double> values(static_cast<size_t>(pairs));
  const double limit = student_t975(pairs - 1);
  for (int draw = 0; draw < kPowerDraws; ++draw) {
    for (double& value : values) value = mean + sd * normal_draw(random);
    const double error = sd_of(values) / std::sqrt(static_cast<double>(pairs));
    found += std::abs(mean_of(values)) > limit * error;
  }
  return static_cast<double>(found) / kPowerDraws;
}

PairedTest paired_test(std::span<const double> differences) {
  PairedTest test;
  test.pairs = static_cast<int>(differences.size());
  test.mean = mean_of(differences);
  if (test.pairs < 2) return test;
  test.sd = sd_of(differences);
  const double error = test.sd / std::sqrt(static_cast<double>(test.pairs)),
               wide = student_t975(test.pairs - 1) * error;
  test.t = {test.mean, test.mean - wide, test.mean + wide};
  test.t_p = error > 0 ? student_t_p(test.mean / error, test.pairs - 1) : test.mean == 0 ? 1 : 0;
  test.flip_p = sign_flip_p(differences);
  if (test.sd <= 0) return test;
  constexpr double kWanted = 0.8;
  double low = 0, high = 20 * test.sd;
  for (int step = 0; step < 24; ++step) {
    const double middle = (low + high) / 2;
    (paired_power(middle, test.sd, test.pairs) < kWanted ? low : high) = middle;
  }
  test.detectable = high;
  return test;
}

}  // namespace ks::stats
