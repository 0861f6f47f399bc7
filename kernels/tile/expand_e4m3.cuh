// Pairs of e4m3 numbers as pairs of 16-bit numbers, by moving bits alone.
//
// An e4m3 number is sign, 4 bits of exponent, 3 of fraction. Put at the top of the exponent and fraction of a 16-bit
// number it has the same value but for a power of two, subnormal numbers included: 2^-120 in bfloat16, 2^-8 in half
// precision. That power is left for the caller to make up for, once, elsewhere.
#pragma once

#include <cstdint>

#include "kernels/tile/element.h"

namespace ks::tile {

/// What an expanded number is to be multiplied with, as a power of two.
constexpr int e4m3_exponent_deficit(Element type) {
  return type == Element::kBf16 ? 120 : 8;
}

/// Bytes 0 and 2 of a word, expanded.
template <Element kType>
__device__ __forceinline__ uint32_t expand_even_e4m3(uint32_t word) {
  if constexpr (kType == Element::kBf16) return ((word << 8) & 0x80008000u) | ((word << 4) & 0x07f007f0u);
  return ((word << 8) & 0x80008000u) | ((word << 7) & 0x3f803f80u);
}

/// Bytes 1 and 3 of a word, expanded.
template <Element kType>
__device__ __forceinline__ uint32_t expand_odd_e4m3(uint32_t word) {
  if constexpr (kType == Element::kBf16) return (word & 0x80008000u) | ((word >> 4) & 0x07f007f0u);
  return (word & 0x80008000u) | ((word >> 1) & 0x3f803f80u);
}

}  // namespace ks::tile
