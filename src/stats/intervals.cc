#include "stats/intervals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace ks::stats {
namespace {

/// Largest k with P(W <= k - 1) <= 0.025 for the signed-rank statistic W of n untied values, from its exact
/// distribution: the interval runs from the k-th smallest to the k-th largest Walsh average.
int signed_rank_cut(int n) {
  const int most = n * (n + 1) / 2;
  std::vector<double> ways(static_cast<size_t>(most) + 1, 0.0);
  ways[0] = 1.0;
  for (int rank = 1; rank <= n; ++rank)
    for (int sum = most; sum >= rank; --sum) ways[static_cast<size_t>(sum)] += ways[static_cast<size_t>(sum - rank)];
  const double total = std::ldexp(1.0, n);
  double cumulative = 0;
  for (int k = 0; k <= most; ++k) {
    cumulative += ways[static_cast<size_t>(k)] / total;
    if (cumulative > 0.025) return k;
  }
  return most;
}

Interval signed_rank_interval(std::span<const double> differences) {
  std::vector<double> walsh;
  for (size_t i = 0; i < differences.size(); ++i)
    for (size_t j = i; j < differences.size(); ++j) walsh.push_back(0.5 * (differences[i] + differences[j]));
  std::sort(walsh.begin(), walsh.end());
  const auto cut = static_cast<size_t>(std::max(1, signed_rank_cut(static_cast<int>(differences.size()))));
  return {median(walsh), walsh[cut - 1], walsh[walsh.size() - cut]};
}

Interval student_interval(std::span<const double> differences) {
  const auto n = static_cast<double>(differences.size());
  const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
  if (differences.size() < 2)
    return {mean, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  double squares = 0;
  for (double d : differences) squares += (d - mean) * (d - mean);
  const double half = student_t975(static_cast<int>(differences.size()) - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

}  // namespace

double median(std::span<const double> values) {
  return quantile(values, 0.5);
}

double quantile(std::span<const double> values, double q) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Interval paired_interval(std::span<const double> differences) {
  KS_CHECK(!differences.empty(), "an interval needs at least one difference");
  // More than 60 values: the newest 60 carry it; the exact distribution of more is not worth its time.
  if (differences.size() >= 6 && differences.size() <= 60) return signed_rank_interval(differences);
  if (differences.size() > 60) return signed_rank_interval(differences.last(60));
  return student_interval(differences);
}

double student_t975(int degrees_of_freedom) {
  constexpr std::array<double, 10> kFirst = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  KS_CHECK(degrees_of_freedom >= 1, "Student's t needs a degree of freedom");
  if (degrees_of_freedom <= 10) return kFirst[static_cast<size_t>(degrees_of_freedom) - 1];
  // Cornish-Fisher expansion around the normal quantile: within 0.001 from 10 degrees on.
  const double z = 1.959964, v = degrees_of_freedom;
  return z + (z * z * z + z) / (4 * v) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * v * v);
}

Interval geometric_mean(std::span<const Interval> ratios) {
  KS_CHECK(!ratios.empty(), "a geometric mean needs at least one ratio");
  double sum = 0, below = 0, above = 0;
  for (const auto& ratio : ratios) {
    const double centre = std::log(ratio.value);
    sum += centre;
    below += std::pow(centre - std::log(ratio.low), 2);
    above += std::pow(std::log(ratio.high) - centre, 2);
  }
  const auto n = static_cast<double>(ratios.size());
  return {std::exp(sum / n), std::exp((sum - std::sqrt(below)) / n), std::exp((sum + std::sqrt(above)) / n)};
}

}  // namespace ks::stats
