// What the rows of one head look like. Scores stay moderate in every character (a standard deviation of 1 to 6, single
// keys up to about 30), so that rounding alone never decides an answer; what varies is where the weight and the
// magnitude lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/attention_fwd.h"
#include "core/dtype.h"

namespace ks::attention_fwd {

enum class Character {
  kPlain,            ///< standard normal
  kOutlierChannels,  ///< some columns of the keys 8 and of the values 4 times as large
  kLargeKeys,        ///< one key of 61 has 6 times the norm
  kConstant,         ///< queries, keys and values vary by a tenth around one vector each
  kTiny,             ///< everything far below 1
  kHuge,             ///< queries and values far above 1, keys as far below
  kDominant,         ///< in each stretch of 128 keys one takes nearly all weight
  kOneHotBlocks,     ///< plain, but the values of a block of keys are one-hot: what a block adds shows
  kConstantValues    ///< plain, but all values of a head are one vector: the answer is that vector
};
inline constexpr size_t kSensitiveCharacters = 3;  ///< in the first so many every key counts
inline constexpr size_t kMixtureCharacters = 7;    ///< the first so many make up the mixture

/// Makes the rows of one head of one member.
class HeadMaker {
 public:
  HeadMaker(const ks_attention_fwd_shape& shape, Character character, uint64_t seed, int64_t keys);

  void query_row(int64_t row_number, float* out) const;  ///< row_number tells the rows of all heads apart
  void key_row(int64_t j, float* out) const;
  void value_row(int64_t j, float* out) const;
  /// True if the recipe is about the values, so that where they are columns of the keys it decides these columns.
  bool rules_values() const {
    return character_ == Character::kOneHotBlocks || character_ == Character::kConstantValues;
  }

 private:
  int64_t dominant_key(int64_t stretch) const;
  const ks_attention_fwd_shape& shape_;
  Character character_;
  uint64_t seed_;
  int64_t keys_;
  float query_gain_ = 1, key_gain_ = 1, value_gain_ = 1;
  std::vector<float> query_centre_, key_centre_, value_centre_;  ///< for kConstant, kConstantValues, kDominant
};

}  // namespace ks::attention_fwd
