#include "core/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace ks::core {
namespace {

struct DtypeRow {
  Dtype dtype;
  const char* name;
  size_t bytes;
};
constexpr std::array<DtypeRow, 5> kDtypes = {{{Dtype::kF32, "fp32", 4},
                                              {Dtype::kF16, "fp16", 2},
                                              {Dtype::kBf16, "bf16", 2},
                                              {Dtype::kE4m3, "e4m3", 1},
                                              {Dtype::kI32, "i32", 4}}};

const DtypeRow& row_of(Dtype dtype) {
  for (const auto& row : kDtypes)
    if (row.dtype == dtype) return row;
  KS_CHECK(false, "every Dtype is in the table");
  return kDtypes[0];
}

}  // namespace

size_t dtype_bytes(Dtype dtype) {
  return row_of(dtype).bytes;
}
const char* dtype_name(Dtype dtype) {
  return row_of(dtype).name;
}

Dtype parse_dtype(const std::string& name) {
  std::string known;
  for (const auto& row : kDtypes) {
    if (name == row.name) return row.dtype;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error("unknown dtype \"{}\"; known: {}", name, known);
}

float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float f16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 31;
  const uint32_t mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return sign | 0x7E00;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return sign | 0x7C00;
  if (magnitude < 0x1.0p-14f)  // subnormal: a multiple of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyintf(magnitude * 0x1.0p24f));
  const uint32_t m = bits & 0x7FFFFFFF;
  const uint32_t rounded = m + 0xFFF + ((m >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - (112u << 23)) >> 13);
}

float e4m3_to_float(uint8_t bits) {
  const uint32_t exponent = (bits >> 3) & 15;
  const uint32_t mantissa = bits & 7;
  float magnitude;
  if (exponent == 15 && mantissa == 7)
    magnitude = std::bit_cast<float>(0x7FC00000u);
  else if (exponent == 0)
    magnitude = static_cast<float>(mantissa) * 0x1.0p-9f;
  else
    magnitude = std::ldexp(1.0f + static_cast<float>(mantissa) / 8.0f, static_cast<int>(exponent) - 7);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

uint8_t float_to_e4m3(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7F;
  const float magnitude = std::fabs(value);
  if (magnitude >= 448.0f) return sign | 0x7E;
  if (magnitude < 0x1.0p-6f) return sign | static_cast<uint8_t>(std::nearbyintf(magnitude * 0x1.0p9f));
  const uint32_t m = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = m + 0x7FFFF + ((m >> 20) & 1);
  const uint32_t code = (rounded - (120u << 23)) >> 20;
  return sign | static_cast<uint8_t>(code > 0x7E ? 0x7E : code);
}

float load_element(const void* data, Dtype dtype, size_t index) {
  switch (dtype) {
    case Dtype::kF32:
      return static_cast<const float*>(data)[index];
    case Dtype::kF16:
      return f16_to_float(static_cast<const uint16_t*>(data)[index]);
    case Dtype::kBf16:
      return bf16_to_float(static_cast<const uint16_t*>(data)[index]);
    case Dtype::kE4m3:
      return e4m3_to_float(static_cast<const uint8_t*>(data)[index]);
    case Dtype::kI32:
      return static_cast<float>(static_cast<const int32_t*>(data)[index]);
  }
  return 0;
}

void store_element(void* data, Dtype dtype, size_t index, float value) {
  switch (dtype) {
    case Dtype::kF32:
      static_cast<float*>(data)[index] = value;
      return;
    case Dtype::kF16:
      static_cast<uint16_t*>(data)[index] = float_to_f16(value);
      return;
    case Dtype::kBf16:
      static_cast<uint16_t*>(data)[index] = float_to_bf16(value);
      return;
    case Dtype::kE4m3:
      static_cast<uint8_t*>(data)[index] = float_to_e4m3(value);
      return;
    case Dtype::kI32:
      static_cast<int32_t*>(data)[index] = static_cast<int32_t>(value);
      return;
  }
}

void to_floats(const void* data, Dtype dtype, size_t count, float* out) {
  if (count == 0) return;  // the pointers may be null then
  if (dtype == Dtype::kF32) {
    std::memcpy(out, data, count * sizeof(float));
    return;
  }
  if (dtype == Dtype::kBf16) {
    const auto* bits = static_cast<const uint16_t*>(data);
    for (size_t i = 0; i < count; ++i) out[i] = bf16_to_float(bits[i]);
    return;
  }
  for (size_t i = 0; i < count; ++i) out[i] = load_element(data, dtype, i);
}

}  // namespace ks::core
