#include "operators/row_norms.h"

#include <cstdint>
#include <cstring>

// The bodies are inlined into one function for each instruction set, chosen when the process first asks. Vectors are
// the compiler's own, so a processor without AVX2 runs the same code in smaller pieces.
#if defined(__x86_64__)
#define KS_AVX2 __attribute__((target("avx2,fma")))
#define KS_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))
#endif
#define KS_INLINE inline __attribute__((always_inline))

namespace ks::op {
namespace {

using Double8 = double __attribute__((vector_size(64)));
using Float8 = float __attribute__((vector_size(32)));
using Word8 = uint32_t __attribute__((vector_size(32)));
using Half8 = uint16_t __attribute__((vector_size(16)));

struct FloatRow {
  const float* data;
  KS_INLINE void load(size_t i, Float8& out) const { std::memcpy(&out, data + i, sizeof(out)); }
  float one(size_t i) const { return data[i]; }
};

struct Bf16Row {
  const uint16_t* data;
  KS_INLINE void load(size_t i, Float8& out) const {
    Half8 bits;
    std::memcpy(&bits, data + i, sizeof(bits));
    const Word8 words = __builtin_convertvector(bits, Word8) << 16;
    std::memcpy(&out, &words, sizeof(out));
  }
  float one(size_t i) const { return core::bf16_to_float(data[i]); }
};

/// In float64: right for any values.
template <typename Row>
KS_INLINE RowNorms wide_norms_of(Row row, const float* want, size_t columns) {
  Double8 difference = {}, square = {};
  size_t i = 0;
  for (; i + 8 <= columns; i += 8) {
    Float8 g, w;
    row.load(i, g);
    std::memcpy(&w, want + i, sizeof(w));
    const Double8 wide = __builtin_convertvector(w, Double8);
    const Double8 d = __builtin_convertvector(g, Double8) - wide;
    difference += d * d;
    square += wide * wide;
  }
  RowNorms norms;
  for (int lane = 0; lane < 8; ++lane) {
    norms.difference += difference[lane];
    norms.want += square[lane];
  }
  for (; i < columns; ++i) {
    const double wide = want[i];
    const double d = static_cast<double>(row.one(i)) - wide;
    norms.difference += d * d;
    norms.want += wide * wide;
  }
  return norms;
}

/// In float32, several times as fast: the sums keep six digits unless squares leave the range of the type.
template <typename Row>
KS_INLINE RowNorms narrow_norms_of(Row row, const float* want, size_t columns) {
  Float8 difference[2] = {}, square[2] = {};
  for (size_t i = 0; i < columns; i += 16)
    for (size_t part = 0; part < 2; ++part) {
      Float8 g, w;
      row.load(i + 8 * part, g);
      std::memcpy(&w, want + i + 8 * part, sizeof(w));
      const Float8 d = g - w;
      difference[part] += d * d;
      square[part] += w * w;
    }
  RowNorms norms;
  for (int lane = 0; lane < 8; ++lane) {
    norms.difference += static_cast<double>(difference[0][lane]) + static_cast<double>(difference[1][lane]);
    norms.want += static_cast<double>(square[0][lane]) + static_cast<double>(square[1][lane]);
  }
  return norms;
}

/// Below this a square may have lost digits or vanished, above it one may have become infinite. What a difference loses
/// then is below 1e-6 of the row's norm.
constexpr double kNarrowLow = 1e-24, kNarrowHigh = 1e36;

template <typename Row>
KS_INLINE RowNorms norms_of(Row row, const float* want, size_t columns) {
  if (columns % 16 == 0) {
    const RowNorms norms = narrow_norms_of(row, want, columns);
    if (norms.want > kNarrowLow && norms.want < kNarrowHigh && norms.difference < kNarrowHigh) return norms;
  }
  return wide_norms_of(row, want, columns);
}

#define KS_NORMS(name, attribute)                                                                \
  attribute RowNorms norms_f32_##name(const float* got, const float* want, size_t columns) {     \
    return norms_of(FloatRow{got}, want, columns);                                               \
  }                                                                                              \
  attribute RowNorms norms_bf16_##name(const uint16_t* got, const float* want, size_t columns) { \
    return norms_of(Bf16Row{got}, want, columns);                                                \
  }
KS_NORMS(plain, )
#if defined(__x86_64__)
KS_NORMS(avx2, KS_AVX2)
KS_NORMS(avx512, KS_AVX512)
#endif

/// One instruction set's functions.
struct Functions {
  RowNorms (*f32)(const float*, const float*, size_t);
  RowNorms (*bf16)(const uint16_t*, const float*, size_t);
};

Functions choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return {norms_f32_avx512, norms_bf16_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {norms_f32_avx2, norms_bf16_avx2};
#endif
  return {norms_f32_plain, norms_bf16_plain};
}

}  // namespace

RowNorms row_norms(core::Dtype dtype, const void* got, const float* want, size_t columns) {
  static const Functions functions = choose();
  if (dtype == core::Dtype::kF32) return functions.f32(static_cast<const float*>(got), want, columns);
  if (dtype == core::Dtype::kBf16) return functions.bf16(static_cast<const uint16_t*>(got), want, columns);
  RowNorms norms;
  for (size_t i = 0; i < columns; ++i) {
    const double wide = want[i];
    const double d = static_cast<double>(core::load_element(got, dtype, i)) - wide;
    norms.difference += d * d;
    norms.want += wide * wide;
  }
  return norms;
}

}  // namespace ks::op
