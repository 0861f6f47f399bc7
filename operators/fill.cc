#include "operators/fill.h"

#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace ks::op {
namespace {

constexpr size_t kQuantiles = size_t{1} << 16;

/// The normal quantile of probability p by Newton steps on the error function; done 65536 times when first needed.
double normal_quantile(double p) {
  double x = 0;
  for (int step = 0; step < 60; ++step) {
    const double excess = 0.5 * std::erfc(-x / std::sqrt(2.0)) - p;
    const double density = std::exp(-0.5 * x * x) * 0.3989422804014327;
    double delta = excess / density;
    // Far from the root a full step would jump over it.
    delta = std::min(1.0, std::max(-1.0, delta));
    x -= delta;
    if (std::fabs(delta) < 1e-12) break;
  }
  return x;
}

const std::vector<float>& quantiles() {
  static const std::vector<float> table = [] {
    std::vector<float> values(kQuantiles);
    for (size_t i = 0; i < kQuantiles / 2; ++i) {
      const double q = normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(kQuantiles));
      values[i] = static_cast<float>(q);
      values[kQuantiles - 1 - i] = static_cast<float>(-q);
    }
    return values;
  }();
  return table;
}

/// e4m3 of every bfloat16.
const std::vector<uint8_t>& e4m3_of_bf16() {
  static const std::vector<uint8_t> table = [] {
    std::vector<uint8_t> codes(kQuantiles);
    for (size_t i = 0; i < kQuantiles; ++i)
      codes[i] = core::float_to_e4m3(core::bf16_to_float(static_cast<uint16_t>(i)));
    return codes;
  }();
  return table;
}

uint16_t round_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

void fill_normal(uint64_t seed, size_t count, float* out) {
  const float* table = quantiles().data();
  size_t i = 0;
  for (uint64_t block = 0; i + 4 <= count; ++block, i += 4) {
    const uint64_t bits = base::mix64(seed, block);
    out[i] = table[bits & 0xFFFF];
    out[i + 1] = table[(bits >> 16) & 0xFFFF];
    out[i + 2] = table[(bits >> 32) & 0xFFFF];
    out[i + 3] = table[bits >> 48];
  }
  uint64_t bits = base::mix64(seed, count / 4);
  for (; i < count; ++i, bits >>= 16) out[i] = table[bits & 0xFFFF];
}

void store_row(const float* from, core::Dtype dtype, size_t count, void* to) {
  if (dtype == core::Dtype::kBf16) {
    auto* out = static_cast<uint16_t*>(to);
    for (size_t i = 0; i < count; ++i) out[i] = round_bf16(from[i]);
  } else if (dtype == core::Dtype::kE4m3) {
    const uint8_t* table = e4m3_of_bf16().data();
    auto* out = static_cast<uint8_t*>(to);
    for (size_t i = 0; i < count; ++i) out[i] = table[round_bf16(from[i])];
  } else {
    for (size_t i = 0; i < count; ++i) core::store_element(to, dtype, i, from[i]);
  }
}

double type_ceiling(core::Dtype dtype) {
  switch (dtype) {
    case core::Dtype::kF16:
      return 0x1.0p12;
    case core::Dtype::kE4m3:
      return 448;
    case core::Dtype::kF32:
    case core::Dtype::kBf16:
      return 0x1.0p40;
    case core::Dtype::kI32:
      break;
  }
  KS_CHECK(false, "recipes fill floating-point tensors");
  return 0;
}

void fill_garbage(uint64_t seed, core::Dtype dtype, size_t count, bool nan, void* to) {
  const auto ceiling = static_cast<float>(type_ceiling(dtype));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = base::mix64(seed, i);
    const float garbage = ceiling * (0.25f + 0.5f * static_cast<float>(bits & 0xFF) / 255.0f);
    const float value = nan ? std::bit_cast<float>(0x7FC00000u) : ((bits & 0x100) != 0 ? garbage : -garbage);
    core::store_element(to, dtype, i, value);
  }
}

}  // namespace ks::op
