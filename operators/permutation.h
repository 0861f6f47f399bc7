// Random permutations, signs and powers of two: what symmetries are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"

namespace ks::op {

/// A uniformly random order of 0 .. count-1.
std::vector<int32_t> random_permutation(size_t count, base::Random& random);

/// +1 or -1 for each of `count` columns.
std::vector<float> random_signs(size_t count, base::Random& random);

/// Multiplies each factor by 2^e, e uniform in [low, high].
void scale_by_powers_of_two(std::vector<float>& factors, int low, int high, base::Random& random);

/// result[permutation[i]] = i.
std::vector<int32_t> inverse_permutation(const std::vector<int32_t>& permutation);

}  // namespace ks::op
