#include "operators/attention_fwd/character.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "operators/fill.h"

namespace ks::attention_fwd {
namespace {

using core::Dtype;

constexpr int64_t kStretch = 128;       // one dominant key in each so many
constexpr int64_t kLargeKeyEvery = 61;  // prime, so that it falls on every place of a tile
constexpr size_t kKeyOutlierEvery = 37;
// Often enough that no row's norm rests on one or two columns: rounding alone would then fail it.
constexpr size_t kValueOutlierEvery = 5;

/// Purposes that draw from one head's seed.
enum Purpose : uint64_t { kQuery = 1, kKey, kValue, kQueryCentre, kKeyCentre, kValueCentre, kPlaces };

/// Powers of two by which "tiny" and "huge" leave the usual range of a type: as far as sums of many keys, and the
/// symmetries' own factors, stay exact or in range.
struct Range {
  float tiny_score, tiny_value, huge_query, huge_value;
};
Range range_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF16:
      return {0x1.0p-5f, 0x1.0p-5f, 0x1.0p5f, 0x1.0p8f};
    case Dtype::kE4m3:
      return {0x1.0p-2f, 0x1.0p-3f, 0x1.0p3f, 0x1.0p6f};
    default:
      return {0x1.0p-10f, 0x1.0p-20f, 0x1.0p20f, 0x1.0p30f};
  }
}

std::vector<float> normals(uint64_t seed, Purpose purpose, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  op::fill_normal(base::mix64(seed, purpose), values.size(), values.data());
  return values;
}

}  // namespace

HeadMaker::HeadMaker(const ks_attention_fwd_shape& shape, Character character, uint64_t seed, int64_t keys)
    : shape_(shape), character_(character), seed_(seed), keys_(keys) {
  const Range query = range_of(static_cast<Dtype>(shape.query_dtype)),
              kv = range_of(static_cast<Dtype>(shape.kv_dtype));
  if (character == Character::kTiny) {
    query_gain_ = query.tiny_score;
    key_gain_ = kv.tiny_score;
    value_gain_ = kv.tiny_value;
  } else if (character == Character::kHuge) {
    const float gain = std::min(query.huge_query, kv.huge_query);
    query_gain_ = gain;
    key_gain_ = 1 / gain;
    value_gain_ = kv.huge_value;
  } else if (character == Character::kConstant) {
    query_centre_ = normals(seed, kQueryCentre, shape.key_dim);
    key_centre_ = normals(seed, kKeyCentre, shape.key_dim);
    value_centre_ = normals(seed, kValueCentre, shape.value_dim);
    query_gain_ = key_gain_ = value_gain_ = 0.1f;
  } else if (character == Character::kConstantValues) {
    value_centre_ = normals(seed, kValueCentre, shape.value_dim);
    value_gain_ = 0;
  } else if (character == Character::kDominant) {
    query_centre_ = normals(seed, kQueryCentre, shape.key_dim);
    for (float& value : query_centre_) value = std::copysign(2.0f, value);
    query_gain_ = key_gain_ = 0.5f;
  }
}

int64_t HeadMaker::dominant_key(int64_t stretch) const {
  return stretch * kStretch +
         static_cast<int64_t>(base::mix64(base::mix64(seed_, kPlaces), static_cast<uint64_t>(stretch)) % kStretch);
}

void HeadMaker::query_row(int64_t row_number, float* out) const {
  const auto columns = static_cast<size_t>(shape_.key_dim);
  op::fill_normal(base::mix64(base::mix64(seed_, kQuery), static_cast<uint64_t>(row_number)), columns, out);
  for (size_t c = 0; c < columns; ++c) out[c] *= query_gain_;
  if (!query_centre_.empty())
    for (size_t c = 0; c < columns; ++c) out[c] += query_centre_[c];
  if (character_ == Character::kOutlierChannels)
    for (size_t c = seed_ % kKeyOutlierEvery; c < columns; c += kKeyOutlierEvery) out[c] *= 0.5f;
}

void HeadMaker::key_row(int64_t j, float* out) const {
  const auto columns = static_cast<size_t>(shape_.key_dim);
  op::fill_normal(base::mix64(base::mix64(seed_, kKey), static_cast<uint64_t>(j)), columns, out);
  float gain = key_gain_;
  if (character_ == Character::kLargeKeys && (j + static_cast<int64_t>(seed_ % kLargeKeyEvery)) % kLargeKeyEvery == 0)
    gain *= 6;
  for (size_t c = 0; c < columns; ++c) out[c] *= gain;
  if (!key_centre_.empty())
    for (size_t c = 0; c < columns; ++c) out[c] += key_centre_[c];
  if (character_ == Character::kOutlierChannels)
    for (size_t c = seed_ % kKeyOutlierEvery; c < columns; c += kKeyOutlierEvery) out[c] *= 8;
  if (character_ == Character::kDominant && dominant_key(j / kStretch) == j) {
    // Scores of 12, 18, 24 or 30 against queries near +-2: rows that see different stretches have different winners.
    const float score = 12.0f + 6.0f * static_cast<float>(base::mix64(seed_, static_cast<uint64_t>(j)) % 4);
    const float along = score / (2.0f * static_cast<float>(shape_.key_dim) * shape_.scale);
    for (size_t c = 0; c < columns; ++c) out[c] = 0.25f * out[c] + std::copysign(along, query_centre_[c]);
  }
}

void HeadMaker::value_row(int64_t j, float* out) const {
  const auto columns = static_cast<size_t>(shape_.value_dim);
  if (character_ == Character::kOneHotBlocks) {
    const int64_t block = std::max<int64_t>(16, (keys_ + shape_.value_dim - 1) / shape_.value_dim);
    std::fill(out, out + columns, 0.0f);
    out[static_cast<size_t>(j / block) % columns] = 1.0f;
    return;
  }
  op::fill_normal(base::mix64(base::mix64(seed_, kValue), static_cast<uint64_t>(j)), columns, out);
  for (size_t c = 0; c < columns; ++c) out[c] *= value_gain_;
  if (!value_centre_.empty())
    for (size_t c = 0; c < columns; ++c) out[c] += value_centre_[c];
  if (character_ == Character::kOutlierChannels)
    for (size_t c = (seed_ >> 8) % kValueOutlierEvery; c < columns; c += kValueOutlierEvery) out[c] *= 4;
}

}  // namespace ks::attention_fwd
