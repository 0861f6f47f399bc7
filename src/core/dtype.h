// Element types and their exact conversions from and to float: binary16, bfloat16, e4m3 (OCP FN).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ks::core {

/// Values equal the ABI's KS_* constants.
enum class Dtype : int32_t { kF32 = 1, kF16 = 2, kBf16 = 3, kE4m3 = 4, kI32 = 5 };

/// Bytes of one element.
size_t dtype_bytes(Dtype dtype);

/// "fp32", "fp16", "bf16", "e4m3", "i32": as grids and records name them.
const char* dtype_name(Dtype dtype);

/// The type of a name; throws ks::Error "unknown dtype …; known: …".
Dtype parse_dtype(const std::string& name);

float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);  ///< round to nearest even
float bf16_to_float(uint16_t bits);
uint16_t float_to_bf16(float value);  ///< round to nearest even; NaN stays NaN
float e4m3_to_float(uint8_t bits);
uint8_t float_to_e4m3(float value);  ///< round to nearest even, saturates to +-448; NaN stays NaN

/// Element `index` of a buffer of `dtype`, as float (kI32 too).
float load_element(const void* data, Dtype dtype, size_t index);

/// Writes `value`, rounded, as element `index`.
void store_element(void* data, Dtype dtype, size_t index, float value);

/// Converts `count` elements that lie one after the other.
void to_floats(const void* data, Dtype dtype, size_t count, float* out);

}  // namespace ks::core
