// Statistics of timings: robust intervals for paired log ratios, geometric means, quantiles. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace ks::stats {

/// An estimate with its 95 % interval.
struct Interval {
  double value = 0, low = 0, high = 0;
};

/// Median of the values (mean of the middle two); 0 for none.
double median(std::span<const double> values);

/// Quantile by linear interpolation, `q` in [0, 1]; 0 for no values.
double quantile(std::span<const double> values, double q);

/// 95 % interval for the centre of paired differences. From 6 values on the Hodges-Lehmann estimate with the interval
/// that inverts the Wilcoxon signed-rank test (Hollander, Wolfe, Chicken, 3rd ed., section 3.2-3.3): no single
/// disturbed sample can move it far. Below 6, where that interval does not exist, Student's t on the mean. One value
/// gives an unbounded interval.
Interval paired_interval(std::span<const double> differences);

/// Two-sided 97.5 % quantile of Student's t.
double student_t975(int degrees_of_freedom);

/// Geometric mean of ratios with the interval that follows from the ratios' own intervals, taken as independent.
Interval geometric_mean(std::span<const Interval> ratios);

}  // namespace ks::stats
