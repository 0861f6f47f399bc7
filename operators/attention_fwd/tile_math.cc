#include "operators/attention_fwd/tile_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#define KS_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define KS_AVX2 __attribute__((target("avx2,fma")))
#endif
#define KS_INLINE inline __attribute__((always_inline))

namespace ks::attention_fwd {
namespace {

using Double8 = double __attribute__((vector_size(64)));
using Word8 = int64_t __attribute__((vector_size(64)));

KS_INLINE void load8(const double* from, Double8& to) {
  std::memcpy(&to, from, sizeof(to));
}
KS_INLINE void store8(double* to, const Double8& from) {
  std::memcpy(to, &from, sizeof(from));
}

/// Four rows by eight columns stay in registers while `inner` runs.
KS_INLINE void multiply_add_body(Matrix c, Matrix a, Matrix b, int64_t rows, int64_t inner, int64_t columns) {
  for (int64_t j = 0; j < columns; j += kTileStepColumns)
    for (int64_t i = 0; i < rows; i += kTileStepRows) {
      const double* a0 = a.data + i * a.stride;
      const double *a1 = a0 + a.stride, *a2 = a1 + a.stride, *a3 = a2 + a.stride;
      double* out = c.data + i * c.stride + j;
      Double8 c0, c1, c2, c3, column;
      load8(out, c0), load8(out + c.stride, c1), load8(out + 2 * c.stride, c2), load8(out + 3 * c.stride, c3);
      const double* from = b.data + j;
      for (int64_t k = 0; k < inner; ++k, from += b.stride) {
        load8(from, column);
        c0 += a0[k] * column;
        c1 += a1[k] * column;
        c2 += a2[k] * column;
        c3 += a3[k] * column;
      }
      store8(out, c0), store8(out + c.stride, c1), store8(out + 2 * c.stride, c2), store8(out + 3 * c.stride, c3);
    }
}

/// exp(x) for x <= 700, 0 below -700: x = n ln 2 + r, a Taylor polynomial in r (|r| < 0.347, error below 1e-14), and n
/// put into the exponent.
KS_INLINE void exp8(Double8& x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the integer in the low bits
  const Word8 keep = x >= -700.0;
  const Double8 floor = Double8{} - 700.0;
  const Word8 floor_bits = __builtin_bit_cast(Word8, floor);
  x = __builtin_bit_cast(Double8, (__builtin_bit_cast(Word8, x) & keep) | (floor_bits & ~keep));
  const Double8 shifted = x * 1.4426950408889634 + kMagic;
  const Double8 n = shifted - kMagic;
  const Double8 r = (x - n * 0x1.62e42fefa3800p-1) - n * 0x1.ef35793c76730p-45;
  Double8 p = Double8{} + 1.0 / 479001600;
  constexpr double kTaylor[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1.0,        1.0};
#pragma GCC unroll 12
  for (const double coefficient : kTaylor) p = p * r + coefficient;
  const Word8 exponent = (__builtin_bit_cast(Word8, shifted) + 1023) << 52;
  const Double8 result = p * __builtin_bit_cast(Double8, exponent);
  x = __builtin_bit_cast(Double8, __builtin_bit_cast(Word8, result) & keep);
}

KS_INLINE double exponentials_body(double* x, int64_t count, double largest) {
  Double8 sum = {};
  for (int64_t i = 0; i < count; i += 8) {
    Double8 value;
    load8(x + i, value);
    value -= largest;
    exp8(value);
    sum += value;
    store8(x + i, value);
  }
  double total = 0;
  for (int lane = 0; lane < 8; ++lane) total += sum[lane];
  return total;
}

/// tanh(y) = (e - 1) / (e + 1) with e = exp(2 y); beyond |y| = 20 it is 1 to the last bit.
KS_INLINE void cap_scores_body(double* x, int64_t count, double cap) {
  for (int64_t i = 0; i < count; i += 8) {
    Double8 value;
    load8(x + i, value);
    value *= 2 / cap;
    for (int lane = 0; lane < 8; ++lane) value[lane] = std::fmin(40.0, std::fmax(-40.0, value[lane]));
    exp8(value);
    value = cap * (value - 1.0) / (value + 1.0);
    store8(x + i, value);
  }
}

#define KS_FORWARD_ALL(suffix, attribute)                                                                      \
  attribute void multiply_add_##suffix(Matrix c, Matrix a, Matrix b, int64_t rows, int64_t inner, int64_t n) { \
    multiply_add_body(c, a, b, rows, inner, n);                                                                \
  }                                                                                                            \
  attribute double exponentials_##suffix(double* x, int64_t count, double largest) {                           \
    return exponentials_body(x, count, largest);                                                               \
  }                                                                                                            \
  attribute void cap_scores_##suffix(double* x, int64_t count, double cap) {                                   \
    cap_scores_body(x, count, cap);                                                                            \
  }

/// One instruction set's functions.
struct Functions {
  void (*multiply_add)(Matrix, Matrix, Matrix, int64_t, int64_t, int64_t);
  double (*exponentials)(double*, int64_t, double);
  void (*cap_scores)(double*, int64_t, double);
};

KS_FORWARD_ALL(plain, )
#if defined(__x86_64__)
KS_FORWARD_ALL(avx2, KS_AVX2)
KS_FORWARD_ALL(avx512, KS_AVX512)
#endif

Functions choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return {multiply_add_avx512, exponentials_avx512, cap_scores_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {multiply_add_avx2, exponentials_avx2, cap_scores_avx2};
#endif
  return {multiply_add_plain, exponentials_plain, cap_scores_plain};
}

const Functions& functions() {
  static const Functions chosen = choose();
  return chosen;
}

const std::array<double, 256>& e4m3_values() {
  static const std::array<double, 256> table = [] {
    std::array<double, 256> values{};
    for (size_t i = 0; i < values.size(); ++i) values[i] = core::e4m3_to_float(static_cast<uint8_t>(i));
    return values;
  }();
  return table;
}

template <typename Element, typename Convert>
void widen_with(const std::byte* from, int64_t count, double* to, int64_t stride, Convert convert) {
  const auto* elements = reinterpret_cast<const Element*>(from);
  if (stride == 1) {
    for (int64_t c = 0; c < count; ++c) to[c] = convert(elements[c]);
    return;
  }
  for (int64_t c = 0; c < count; ++c) to[c * stride] = convert(elements[c]);
}

}  // namespace

void multiply_add(Matrix c, Matrix a, Matrix b, int64_t rows, int64_t inner, int64_t columns) {
  functions().multiply_add(c, a, b, rows, inner, columns);
}

double exponentials(double* x, int64_t count, double largest) {
  return functions().exponentials(x, count, largest);
}

void cap_scores(double* x, int64_t count, double cap) {
  functions().cap_scores(x, count, cap);
}

void widen_into_column(const std::byte* from, core::Dtype dtype, int64_t count, double* to, int64_t stride) {
  switch (dtype) {
    case core::Dtype::kF32:
      return widen_with<float>(from, count, to, stride, [](float v) { return v; });
    case core::Dtype::kBf16:
      return widen_with<uint16_t>(from, count, to, stride,
                                  [](uint16_t v) { return std::bit_cast<float>(static_cast<uint32_t>(v) << 16); });
    case core::Dtype::kF16:
      return widen_with<uint16_t>(from, count, to, stride, core::f16_to_float);
    case core::Dtype::kE4m3: {
      const double* table = e4m3_values().data();
      return widen_with<uint8_t>(from, count, to, stride, [table](uint8_t v) { return table[v]; });
    }
    case core::Dtype::kI32:
      return widen_with<int32_t>(from, count, to, stride, [](int32_t v) { return v; });
  }
}

void widen(const std::byte* from, core::Dtype dtype, int64_t count, double* to) {
  widen_into_column(from, dtype, count, to, 1);
}

}  // namespace ks::attention_fwd
