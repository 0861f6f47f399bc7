#include "operators/permutation.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace ks::op {

std::vector<int32_t> random_permutation(size_t count, base::Random& random) {
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

std::vector<float> random_signs(size_t count, base::Random& random) {
  std::vector<float> signs(count);
  for (float& sign : signs) sign = (random.next() & 1) != 0 ? 1.0f : -1.0f;
  return signs;
}

void scale_by_powers_of_two(std::vector<float>& factors, int low, int high, base::Random& random) {
  const auto span = static_cast<uint64_t>(high - low + 1);
  for (float& factor : factors) factor = std::ldexp(factor, low + static_cast<int>(random.below(span)));
}

std::vector<int32_t> inverse_permutation(const std::vector<int32_t>& permutation) {
  std::vector<int32_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int32_t>(i);
  return inverse;
}

}  // namespace ks::op
