// V transposed in shared memory: the tensor cores take 8-bit operands with the reduced dimension (keys) contiguous
// only.
//
// Sixteen keys by 32 columns at a time: a transposing ldmatrix takes pairs of bytes as 16-bit elements, so a lane gets
// columns (2c, 2c+1) of keys (2q, 2q+1) and of keys (2q+8, 2q+9). One byte permute of the two picks column 2c of the
// four keys, another column 2c+1: four keys of a column in a word, in the order in which pack_weights() has them.
// Even columns of sixteen go to rows 0-7, odd ones to rows 8-15 of the transposed tile, so that the stores meet all
// banks; output_column() says where a column of the product belongs.
#pragma once

#include "kernels/ptx/ldst.cuh"
#include "kernels/ptx/math.cuh"
#include "kernels/ptx/mma.cuh"

namespace ks::fa3::fp8 {

/// Zeroes the bytes of keys at and past `keys` in words of a group of 16 keys: the lane's keys are 2q, 2q+1 (first) and
/// 8 further (second), two bytes each.
__device__ __forceinline__ void clear_keys_from(uint32_t& first, uint32_t& second, int keys, int quad_lane) {
  const auto mask = [](int left) { return left >= 2 ? 0xffffffffu : left == 1 ? 0x0000ffffu : 0u; };
  first &= mask(keys - 2 * quad_lane);
  second &= mask(keys - 2 * quad_lane - 8);
}

/// This warp's share (warp `warp` of `warps`) of a block of kKeys keys of kDim columns, of which `keys` exist: the rest
/// is zero, whatever lies there. Addresses as SmemTile::chunk_address() gives them, but for what does not change.
template <typename RawTile, typename TurnedTile, int kKeys, int kDim>
__device__ __forceinline__ void turn_values(uint32_t raw, uint32_t turned, int keys, int warp, int warps, int lane) {
  constexpr int kPieces = kDim / 32;
  constexpr int kTogether = kPieces < 4 ? kPieces : 4;  // loads under way
  static_assert(kPieces % kTogether == 0);
  const int matrix = lane / 8;
  const int row = lane % 8;
  const uint32_t from = raw + (matrix % 2 * 8 + row) * RawTile::kRowBytes;
  const uint32_t from_chunk = (matrix / 2 ^ row) << 4;
  const uint32_t to = turned + (8 * matrix + row) * TurnedTile::kRowBytes;
#pragma unroll 1
  for (int sixteen = warp; sixteen < kKeys / 16; sixteen += warps) {
    const uint32_t from_keys = from + sixteen * (16 * RawTile::kRowBytes);
    const uint32_t to_keys = to + sixteen / 8 * TurnedTile::kSlabBytes + ((sixteen % 8 ^ row) << 4);
    const int left = keys - 16 * sixteen;
#pragma unroll
    for (int first = 0; first < kPieces; first += kTogether) {
      uint32_t in[kTogether][4];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int piece = first + i;
        ptx::ldmatrix_x4_trans(in[i], from_keys + piece / 4 * RawTile::kSlabBytes + (from_chunk ^ (piece % 4 << 5)));
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        if (left < 16) {
          clear_keys_from(in[i][0], in[i][1], left, lane % 4);
          clear_keys_from(in[i][2], in[i][3], left, lane % 4);
        }
        ptx::stmatrix_x4(to_keys + (first + i) * (32 * TurnedTile::kRowBytes), ptx::prmt(in[i][0], in[i][1], 0x6420),
                         ptx::prmt(in[i][0], in[i][1], 0x7531), ptx::prmt(in[i][2], in[i][3], 0x6420),
                         ptx::prmt(in[i][2], in[i][3], 0x7531));
      }
    }
  }
}

}  // namespace ks::fa3::fp8
