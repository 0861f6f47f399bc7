// Tests of paired differences, one number a pair (a block of an experiment): Student's t and the exact test that flips
// signs. On few pairs the second is the one to trust: it assumes nothing but that under "no difference" either order of
// a pair is equally likely. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "stats/intervals.h"

namespace ks::stats {

/// What the differences say.
struct PairedTest {
  int pairs = 0;
  double mean = 0, sd = 0;
  Interval t;             ///< of the mean, 95 %, Student
  double t_p = 1;         ///< two-sided
  double flip_p = 1;      ///< two-sided, sign flips: exact up to kExactPairs pairs, then by 100,000 draws
  double detectable = 0;  ///< the least true mean that a t test on so many pairs with this sd finds in 80 of 100 cases
};

inline constexpr int kExactPairs = 20;

/// With fewer than two pairs only `pairs` and `mean` mean anything.
PairedTest paired_test(std::span<const double> differences);

/// Two-sided p of the sign-flip test.
double sign_flip_p(std::span<const double> differences);

/// P(|T| >= |t|) for Student's t.
double student_t_p(double t, int degrees_of_freedom);

/// Share of experiments that a two-sided t test at 5 % finds, with normal differences of that mean and sd.
double paired_power(double mean, double sd, int pairs);

}  // namespace ks::stats
