// The online softmax of a micro tile against a key block: scores become weights, and the running maximum and sum of
// each row follow. Everything is in logarithms to base 2. In float the maximum moves only when a score exceeds it by
// more than kSlack, so that in nearly all blocks nothing has to be rescaled; weights are then at most 2^kSlack. With
// bfloat16 weights it moves at once: the largest weight is then exactly 1, and not rounded.
#pragma once
#include "arithmetic.h"
#include "members.h"

namespace ks::attention_cpu {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504f;

/// Of one query row, while its keys go by. `sum` lies by lanes.
struct RowState {
  float maximum;
  Interval keys;
  int64_t row, head;
};

/// 2^x for x <= Arithmetic::kSlack; below -126 it stays 2^-126.
template <class Arithmetic>
HWY_INLINE Vec exp2(Vec x) {
  const hn::RebindToSigned<FloatTag> integers;
  const Vec magic = hn::Set(kFloats, 12582912.0f);  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  x = hn::Max(x, hn::Set(kFloats, -126.0f));
  const Vec shifted = hn::Add(x, magic);
  const Vec fraction = hn::Sub(x, hn::Sub(shifted, magic));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integers, shifted));
  return hn::BitCast(kFloats, hn::Add(hn::BitCast(integers, Arithmetic::exp2_fraction(fraction)), exponent));
}

/// Scores to logarithms to base 2 under a softcap (or a scale that is not positive).
inline void cap_scores(float scale, float softcap, float* scores, int64_t begin, int64_t end, float* largest) {
  float top = kNothing;
  for (int64_t j = begin; j < end; ++j) {
    const float score = scores[j] * scale;
    scores[j] = (softcap > 0 ? softcap * std::tanh(score / softcap) : score) * kLog2E;
    top = std::max(top, scores[j]);
  }
  hn::StoreU(hn::Set(kFloats, top), kFloats, largest);
}

/// Hides the keys of a row outside [visible.begin, visible.end), both within the block.
inline void mask_scores(Interval visible, float* scores, int64_t begin, int64_t end, float* largest) {
  const Vec none = hn::Set(kFloats, kNothing);
  const Vec from = hn::Set(kFloats, static_cast<float>(visible.begin));
  const Vec to = hn::Set(kFloats, static_cast<float>(visible.end));
  Vec top = none;
  for (int64_t j = begin; j < end; j += kLanes) {
    const Vec index = hn::Iota(kFloats, static_cast<float>(j));
    const Vec seen =
        hn::IfThenElse(hn::And(hn::Ge(index, from), hn::Lt(index, to)), hn::LoadU(kFloats, scores + j), none);
    hn::StoreU(seen, kFloats, scores + j);
    top = hn::Max(top, seen);
  }
  hn::StoreU(top, kFloats, largest);
}

/// Moves the maximum of a row up to its new score and rescales what was summed under the old one.
inline void raise_maximum(float score, RowState& state, float* sum, float* output, int64_t columns) {
  const float keep = state.maximum == kNothing ? 0.0f : std::exp2(state.maximum - score);
  state.maximum = score;
  const Vec factor = hn::Set(kFloats, keep);
  hn::StoreU(hn::Mul(hn::LoadU(kFloats, sum), factor), kFloats, sum);
  for (int64_t c = 0; c < columns; c += kLanes)
    hn::StoreU(hn::Mul(hn::LoadU(kFloats, output + c), factor), kFloats, output + c);
}

/// Weights of one row for the keys begin .. end (whole vectors). With kMasked, hidden keys get exactly 0.
template <class Arithmetic, bool kMasked>
HWY_INLINE void weigh(const float* HWY_RESTRICT scores, float to_log2, float maximum, int64_t begin, int64_t end,
                      typename Arithmetic::Element* HWY_RESTRICT weights, float* HWY_RESTRICT sum) {
  const Vec factor = hn::Set(kFloats, to_log2);
  const Vec shift = hn::Set(kFloats, maximum == kNothing ? 0.0f : maximum);
  Vec total = hn::LoadU(kFloats, sum);
  for (int64_t j = begin; j < end; j += kLanes) {
    const Vec x = hn::MulSub(hn::LoadU(kFloats, scores + j), factor, shift);
    Vec p = exp2<Arithmetic>(x);
    if constexpr (kMasked) p = hn::IfThenElseZero(hn::Gt(x, hn::Set(kFloats, -126.0f)), p);
    total = hn::Add(total, p);
    Arithmetic::store_weights(p, weights + j);
  }
  hn::StoreU(total, kFloats, sum);
}

}  // namespace ks::attention_cpu
