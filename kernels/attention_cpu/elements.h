// Loads and stores of the ABI's element types, a row at a time, into the two types that the kernel computes in: float,
// and bfloat16 pairs where the machine multiplies them.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "attention_fwd.h"
#include "tiles.h"

namespace ks::attention_cpu {

inline float from_bf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// Round to nearest even; the inputs are never NaN where it matters.
inline uint16_t to_bf16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return static_cast<uint16_t>((word + 0x7FFF + ((word >> 16) & 1)) >> 16);
}

inline float decode_e4m3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                   : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -size : size;
}

inline const std::array<float, 256>& e4m3_values() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (int bits = 0; bits < 256; ++bits) values[static_cast<size_t>(bits)] = decode_e4m3(static_cast<uint8_t>(bits));
    return values;
  }();
  return table;
}

inline uint8_t to_e4m3(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float size = std::min(std::fabs(value), 448.0f);
  if (size < 0.015625f) return static_cast<uint8_t>(sign | static_cast<int>(std::nearbyint(size * 512.0f)));
  int exponent;
  const float fraction = std::frexp(size, &exponent);  // in [0.5, 1)
  const int code = (exponent + 6) * 8 + static_cast<int>(std::nearbyint((fraction * 2 - 1) * 8));
  return static_cast<uint8_t>(sign | std::min(code, 0x7E));
}

inline size_t element_bytes(int32_t dtype) {
  return dtype == KS_F32 ? 4 : dtype == KS_E4M3 ? 1 : 2;
}

inline void load_row(const void* data, int32_t dtype, int64_t at, int64_t columns, float* __restrict out) {
  if (dtype == KS_F32) {
    std::memcpy(out, static_cast<const float*>(data) + at, sizeof(float) * static_cast<size_t>(columns));
  } else if (dtype == KS_BF16) {
    const uint16_t* row = static_cast<const uint16_t*>(data) + at;
    for (int64_t c = 0; c < columns; ++c) out[c] = from_bf16(row[c]);
  } else if (dtype == KS_F16) {
    const _Float16* row = static_cast<const _Float16*>(data) + at;
    for (int64_t c = 0; c < columns; ++c) out[c] = static_cast<float>(row[c]);
  } else {
    const uint8_t* row = static_cast<const uint8_t*>(data) + at;
    const auto& table = e4m3_values();
    for (int64_t c = 0; c < columns; ++c) out[c] = table[row[c]];
  }
}

/// For bfloat16 and e4m3 data, whose values are all bfloat16 values.
inline void load_row(const void* data, int32_t dtype, int64_t at, int64_t columns, uint16_t* __restrict out) {
  if (dtype == KS_BF16) {
    std::memcpy(out, static_cast<const uint16_t*>(data) + at, sizeof(uint16_t) * static_cast<size_t>(columns));
  } else {
    const uint8_t* row = static_cast<const uint8_t*>(data) + at;
    const auto& table = e4m3_values();
    for (int64_t c = 0; c < columns; ++c) out[c] = to_bf16(table[row[c]]);
  }
}

inline void store_row(void* data, int32_t dtype, int64_t at, int64_t columns, const float* __restrict in,
                      float factor) {
  if (dtype == KS_F32) {
    float* row = static_cast<float*>(data) + at;
    for (int64_t c = 0; c < columns; ++c) row[c] = in[c] * factor;
  } else if (dtype == KS_BF16) {
    uint16_t* row = static_cast<uint16_t*>(data) + at;
    for (int64_t c = 0; c < columns; ++c) row[c] = to_bf16(in[c] * factor);
  } else if (dtype == KS_F16) {
    _Float16* row = static_cast<_Float16*>(data) + at;
    for (int64_t c = 0; c < columns; ++c) row[c] = static_cast<_Float16>(in[c] * factor);
  } else {
    uint8_t* row = static_cast<uint8_t*>(data) + at;
    for (int64_t c = 0; c < columns; ++c) row[c] = to_e4m3(in[c] * factor);
  }
}

}  // namespace ks::attention_cpu
