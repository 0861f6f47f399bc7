#include "operators/columns.h"

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define KS_AVX2 __attribute__((target("avx2")))
#define KS_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx2")))
#define KS_VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx2")))
#else
#define KS_AVX2
#endif

namespace ks::op {
namespace {

constexpr size_t kVectorBytes = 64;
constexpr size_t kMostVectors = 16;  ///< beyond that, going through all pairs costs more than one by one

template <typename Word>
void permute_one_by_one(const std::byte* from, const int32_t* source, size_t count, std::byte* to) {
  const auto* old = reinterpret_cast<const Word*>(from);
  auto* moved = reinterpret_cast<Word*>(to);
  for (size_t c = 0; c < count; ++c) moved[c] = old[source[c]];
}

#if defined(__x86_64__)
bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

bool can_permute_in_registers(size_t element) {
  static const bool words = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  static const bool bytes = words && __builtin_cpu_supports("avx512vbmi");
  return element == 1 ? bytes : words;
}

/// Where the vectors lie, and how lanes are chosen.
struct RegisterPlan {
  const std::byte* lanes;
  const uint64_t* masks;
  size_t vectors, pairs;
};

/// One function for each width of a lane; `Permute` picks lanes out of two vectors, `Blend` merges by mask.
#define KS_PERMUTE(name, attribute, permute2, blend)                                        \
  attribute void name(const std::byte* from, const RegisterPlan& plan, std::byte* to) {     \
    for (size_t v = 0; v < plan.vectors; ++v) {                                             \
      const __m512i lanes = _mm512_loadu_si512(plan.lanes + v * kVectorBytes);              \
      __m512i result = _mm512_setzero_si512();                                              \
      for (size_t p = 0; p < plan.pairs; ++p) {                                             \
        const size_t second = 2 * p + 1 < plan.vectors ? 2 * p + 1 : 2 * p;                 \
        const __m512i low = _mm512_loadu_si512(from + 2 * p * kVectorBytes);                \
        const __m512i high = _mm512_loadu_si512(from + second * kVectorBytes);              \
        result = blend(plan.masks[v * plan.pairs + p], result, permute2(low, lanes, high)); \
      }                                                                                     \
      _mm512_storeu_si512(to + v * kVectorBytes, result);                                   \
    }                                                                                       \
  }
KS_PERMUTE(permute_words32, KS_AVX512, _mm512_permutex2var_epi32, _mm512_mask_blend_epi32)
KS_PERMUTE(permute_words16, KS_AVX512, _mm512_permutex2var_epi16, _mm512_mask_blend_epi16)
KS_PERMUTE(permute_words8, KS_VBMI, _mm512_permutex2var_epi8, _mm512_mask_blend_epi8)
#endif

constexpr size_t kStagedBytes = 2048;  ///< the longest row that is moved past the cache

#if defined(__x86_64__)
KS_AVX2 void stream(const std::byte* from, size_t bytes, std::byte* to) {
  for (size_t i = 0; i < bytes; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i)));
}
#endif

// The loops below are the compiler's to put into vectors.
#define KS_ELEMENTWISE(name, attribute)                                                                      \
  attribute void flip_##name(std::byte* __restrict row, const std::byte* __restrict flips, size_t bytes) {   \
    for (size_t i = 0; i < bytes; ++i) row[i] ^= flips[i];                                                   \
  }                                                                                                          \
  attribute void scale_f32_##name(float* __restrict row, const float* __restrict factor, size_t count) {     \
    for (size_t c = 0; c < count; ++c) row[c] *= factor[c];                                                  \
  }                                                                                                          \
  attribute void scale_bf16_##name(uint16_t* __restrict row, const float* __restrict factor, size_t count) { \
    for (size_t c = 0; c < count; ++c) {                                                                     \
      const float value = std::bit_cast<float>(static_cast<uint32_t>(row[c]) << 16) * factor[c];             \
      row[c] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);                                  \
    }                                                                                                        \
  }
KS_ELEMENTWISE(plain, )
#if defined(__x86_64__)
KS_ELEMENTWISE(avx2, KS_AVX2)
#else
constexpr bool has_avx2() {
  return false;
}
constexpr auto flip_avx2 = flip_plain;
constexpr auto scale_f32_avx2 = scale_f32_plain;
constexpr auto scale_bf16_avx2 = scale_bf16_plain;
#endif

}  // namespace

ColumnMover::ColumnMover(core::Dtype dtype, size_t columns, const std::vector<int32_t>& source,
                         const std::vector<float>& factor)
    : dtype_(dtype), columns_(columns), element_(core::dtype_bytes(dtype)), source_(source), factor_(factor) {
  if (!factor_.empty()) {
    only_signs_ = true;
    flips_.resize(columns_ * element_);
    for (size_t c = 0; c < columns_; ++c) {
      only_signs_ = only_signs_ && (factor_[c] == 1.0f || factor_[c] == -1.0f);
      if (factor_[c] < 0) flips_[(c + 1) * element_ - 1] = std::byte{0x80};
    }
  }
  if (!source_.empty()) plan_registers();
}

void ColumnMover::plan_registers() {
#if defined(__x86_64__)
  const size_t lanes = kVectorBytes / element_;
  const size_t vectors = columns_ / lanes, pairs = (vectors + 1) / 2;
  if (columns_ % lanes != 0 || vectors > kMostVectors || !can_permute_in_registers(element_)) return;
  in_registers_ = true;
  lanes_.resize(columns_ * element_);
  masks_.assign(vectors * pairs, 0);
  for (size_t c = 0; c < columns_; ++c) {
    const auto source = static_cast<size_t>(source_[c]);
    const size_t lane = source % (2 * lanes);
    for (size_t byte = 0; byte < element_; ++byte)
      lanes_[c * element_ + byte] = static_cast<std::byte>((lane >> (8 * byte)) & 0xFF);
    masks_[c / lanes * pairs + source / (2 * lanes)] |= uint64_t{1} << (c % lanes);
  }
#endif
}

void ColumnMover::permute(const std::byte* from, std::byte* to) const {
  if (source_.empty()) {
    std::memcpy(to, from, columns_ * element_);
    return;
  }
#if defined(__x86_64__)
  if (in_registers_) {
    const size_t vectors = columns_ * element_ / kVectorBytes;
    const RegisterPlan plan{lanes_.data(), masks_.data(), vectors, (vectors + 1) / 2};
    if (element_ == 4) return permute_words32(from, plan, to);
    if (element_ == 2) return permute_words16(from, plan, to);
    return permute_words8(from, plan, to);
  }
#endif
  if (element_ == 4) return permute_one_by_one<uint32_t>(from, source_.data(), columns_, to);
  if (element_ == 2) return permute_one_by_one<uint16_t>(from, source_.data(), columns_, to);
  permute_one_by_one<uint8_t>(from, source_.data(), columns_, to);
}

void ColumnMover::apply_factors(std::byte* row) const {
  if (only_signs_) {
    has_avx2() ? flip_avx2(row, flips_.data(), flips_.size()) : flip_plain(row, flips_.data(), flips_.size());
  } else if (dtype_ == core::Dtype::kF32) {
    auto* values = reinterpret_cast<float*>(row);
    has_avx2() ? scale_f32_avx2(values, factor_.data(), columns_) : scale_f32_plain(values, factor_.data(), columns_);
  } else if (dtype_ == core::Dtype::kBf16) {
    // Powers of two change the exponent alone, so cutting the low half of the product loses nothing.
    auto* values = reinterpret_cast<uint16_t*>(row);
    has_avx2() ? scale_bf16_avx2(values, factor_.data(), columns_) : scale_bf16_plain(values, factor_.data(), columns_);
  } else {
    for (size_t c = 0; c < columns_; ++c)
      core::store_element(row, dtype_, c, core::load_element(row, dtype_, c) * factor_[c]);
  }
}

void ColumnMover::move(const std::byte* from, std::byte* to) const {
  permute(from, to);
  if (!factor_.empty()) apply_factors(to);
}

void ColumnMover::move_past_cache(const std::byte* from, std::byte* to) const {
#if defined(__x86_64__)
  const bool aligned = reinterpret_cast<uintptr_t>(to) % 32 == 0 && row_bytes() % 32 == 0;
  if (aligned && row_bytes() <= kStagedBytes && has_avx2()) {
    alignas(64) std::byte staged[kStagedBytes];
    move(from, staged);
    return stream(staged, row_bytes(), to);
  }
#endif
  move(from, to);
}

void finish_moves_past_cache() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace ks::op
