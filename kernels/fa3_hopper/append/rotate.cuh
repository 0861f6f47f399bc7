// Rotary position embedding of eight neighbouring columns at a time.
//
// Pairs (x, y) at a position turn by its angle: x cos - y sin and x sin + y cos, in binary32, rounded once. Pairs are
// columns c and c + half (halves) or 2c and 2c + 1 (interleaved), of the leading 2 half columns.
#pragma once

#include <cuda_fp16.h>

#include "attention_fwd.h"
#include "kernels/fa3_hopper/append/params.h"
#include "kernels/tile/matmul.cuh"

namespace ks::fa3::append {

/// One of the two elements in a word.
template <tile::Element kType>
__device__ __forceinline__ float unpack(uint32_t word, int index) {
  if constexpr (kType == tile::Element::kBf16) return __uint_as_float(index == 0 ? word << 16 : word & 0xffff0000u);
  return __half2float(__ushort_as_half(static_cast<uint16_t>(index == 0 ? word : word >> 16)));
}

template <tile::Element kType>
__device__ __forceinline__ void unpack_eight(float (&values)[8], uint4 words) {
  const uint32_t all[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = unpack<kType>(all[i / 2], i % 2);
}

__device__ __forceinline__ uint4 load_eight(const uint16_t* from) {
  return *reinterpret_cast<const uint4*>(from);
}

/// Columns 8 chunk .. 8 chunk + 7 of the row that starts at `row`, rotated for `position`.
template <tile::Element kType>
__device__ __forceinline__ uint4 rotated_chunk(const AppendParams& params, const uint16_t* row, int chunk,
                                               int position) {
  const uint4 own = load_eight(row + 8 * chunk);
  if (params.rotary_style == KS_ROTARY_NONE || 8 * chunk >= params.rotary_dim) return own;
  const int half = params.rotary_dim / 2;
  const uint16_t* cosines = params.cosines + position * params.rotary_stride;
  const uint16_t* sines = params.sines + position * params.rotary_stride;
  float x[8], y[8], cosine[8], sine[8], result[8];
  unpack_eight<kType>(x, own);
  if (params.rotary_style == KS_ROTARY_HALVES) {
    const bool second = 8 * chunk >= half;
    const int pair = second ? 8 * chunk - half : 8 * chunk;
    unpack_eight<kType>(y, load_eight(row + (second ? pair : pair + half)));
    unpack_eight<kType>(cosine, load_eight(cosines + pair));
    unpack_eight<kType>(sine, load_eight(sines + pair));
#pragma unroll
    for (int i = 0; i < 8; ++i) result[i] = fmaf(x[i], cosine[i], (second ? y[i] : -y[i]) * sine[i]);
  } else {
    const uint2 four_cosines = *reinterpret_cast<const uint2*>(cosines + 4 * chunk);
    const uint2 four_sines = *reinterpret_cast<const uint2*>(sines + 4 * chunk);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float c = unpack<kType>(i < 2 ? four_cosines.x : four_cosines.y, i % 2);
      const float s = unpack<kType>(i < 2 ? four_sines.x : four_sines.y, i % 2);
      result[2 * i] = fmaf(x[2 * i], c, -x[2 * i + 1] * s);
      result[2 * i + 1] = fmaf(x[2 * i + 1], c, x[2 * i] * s);
    }
  }
  return {tile::pack<kType>(result[0], result[1]), tile::pack<kType>(result[2], result[3]),
          tile::pack<kType>(result[4], result[5]), tile::pack<kType>(result[6], result[7])};
}

}  // namespace ks::fa3::append
