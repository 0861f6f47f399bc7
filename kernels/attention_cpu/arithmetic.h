// The two products of attention, scores = Q K^T and output += P V, as one micro kernel in two arithmetics: float, and
// bfloat16 pairs summed in float. A "unit" is 32 bits: one float, or two neighbouring bfloat16 of the summed dimension.
#pragma once
#include "tiles.h"

namespace ks::attention_cpu {

struct FloatArithmetic {
  using Unit = float;
  using Element = float;
  static constexpr int kPerUnit = 1;
  static constexpr float kSlack = 8.0f;

  static HWY_INLINE Vec broadcast(const Unit* at) { return hn::Set(kFloats, *at); }
  static HWY_INLINE Vec load(const Unit* at) { return hn::LoadU(kFloats, at); }
  static HWY_INLINE Vec add_product(Vec a, Vec b, Vec sum) { return hn::MulAdd(a, b, sum); }
  static HWY_INLINE void store_weights(Vec p, Element* at) { hn::StoreU(p, kFloats, at); }

  /// 2^f on [-1/2, 1/2], relative error below 2e-7.
  static HWY_INLINE Vec exp2_fraction(Vec f) {
    Vec p = hn::MulAdd(hn::Set(kFloats, 0.0013390863f), f, hn::Set(kFloats, 0.0096760318f));
    p = hn::MulAdd(p, f, hn::Set(kFloats, 0.0555035695f));
    p = hn::MulAdd(p, f, hn::Set(kFloats, 0.240221068f));
    p = hn::MulAdd(p, f, hn::Set(kFloats, 0.693147182f));
    return hn::MulAdd(p, f, hn::Set(kFloats, 1.0f));
  }
};

#if defined(__AVX512BF16__) && HWY_TARGET <= HWY_AVX3
struct PairArithmetic {
  using Unit = uint32_t;
  using Element = uint16_t;
  static constexpr int kPerUnit = 2;
  static constexpr float kSlack = 0.0f;

  static HWY_INLINE Vec broadcast(const Unit* at) {
    return Vec{_mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(*at)))};
  }
  static HWY_INLINE Vec load(const Unit* at) { return Vec{_mm512_castsi512_ps(_mm512_loadu_si512(at))}; }
  static HWY_INLINE Vec add_product(Vec a, Vec b, Vec sum) {
    return Vec{_mm512_dpbf16_ps(sum.raw, (__m512bh)(a.raw), (__m512bh)(b.raw))};
  }
  static HWY_INLINE void store_weights(Vec p, Element* at) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), (__m256i)(_mm512_cvtneps_pbh(p.raw)));
  }

  /// 2^f on [-1/2, 1/2], relative error below 1e-4: a twentieth of what rounding the weight to bfloat16 makes.
  static HWY_INLINE Vec exp2_fraction(Vec f) {
    Vec p = hn::MulAdd(hn::Set(kFloats, 0.0558382832f), f, hn::Set(kFloats, 0.242639482f));
    p = hn::MulAdd(p, f, hn::Set(kFloats, 0.693136752f));
    return hn::MulAdd(p, f, hn::Set(kFloats, 0.999924541f));
  }
};
#endif

/// sums[r][n] += sum over k of a[k + r * row_a] * b[k * step_b + n * kLanes]. All sums stay in registers.
template <class Arithmetic, int kRows, int kVectors>
HWY_INLINE void multiply(const typename Arithmetic::Unit* HWY_RESTRICT a, int64_t row_a,
                         const typename Arithmetic::Unit* HWY_RESTRICT b, int64_t step_b, int64_t count,
                         Vec (&sums)[kRows][kVectors]) {
  for (int64_t k = 0; k < count; ++k) {
    Vec columns[kVectors];
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) columns[n] = Arithmetic::load(b + n * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec row = Arithmetic::broadcast(a + r * row_a);
#pragma GCC unroll 16
      for (int n = 0; n < kVectors; ++n) sums[r][n] = Arithmetic::add_product(row, columns[n], sums[r][n]);
    }
    ++a;
    b += step_b;
  }
}

/// Scores of kRows rows against kVectors vectors of keys of one panel, and the largest of each row and lane.
template <class Arithmetic, int kRows, int kVectors>
HWY_NOINLINE void score_panel(const typename Arithmetic::Unit* HWY_RESTRICT query,
                              const typename Arithmetic::Unit* HWY_RESTRICT panel, int64_t units,
                              float* HWY_RESTRICT scores, float* HWY_RESTRICT largest) {
  Vec sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) sums[r][n] = hn::Zero(kFloats);
  multiply<Arithmetic, kRows, kVectors>(query, units, panel, kPanelKeys, units, sums);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    Vec top = hn::LoadU(kFloats, largest + r * kLanes);
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) {
      hn::StoreU(sums[r][n], kFloats, scores + r * kKeyBlock + n * kLanes);
      top = hn::Max(top, sums[r][n]);
    }
    hn::StoreU(top, kFloats, largest + r * kLanes);
  }
}

/// output[r][columns] += sum over keys of weights[r][key] * values[key][columns], for kVectors vectors of columns.
template <class Arithmetic, int kRows, int kVectors>
HWY_NOINLINE void add_values(const typename Arithmetic::Unit* HWY_RESTRICT weights,
                             const typename Arithmetic::Unit* HWY_RESTRICT values, int64_t columns, int64_t units,
                             float* HWY_RESTRICT output) {
  Vec sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) sums[r][n] = hn::LoadU(kFloats, output + r * columns + n * kLanes);
  multiply<Arithmetic, kRows, kVectors>(weights, kKeyBlock / Arithmetic::kPerUnit, values, columns, units, sums);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int n = 0; n < kVectors; ++n) hn::StoreU(sums[r][n], kFloats, output + r * columns + n * kLanes);
}

/// Turns a number known at run time, 1 .. kMost, into a template argument: call(std::integral_constant<int, number>).
template <int kMost, class Function>
HWY_INLINE void with_constant(int number, Function&& call) {
  if constexpr (kMost > 1) {
    if (number < kMost) return with_constant<kMost - 1>(number, call);
  }
  call(std::integral_constant<int, kMost>{});
}

}  // namespace ks::attention_cpu
