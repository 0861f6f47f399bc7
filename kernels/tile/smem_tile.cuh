// A tile of 16-bit elements in shared memory, as the copy engine writes it and the tensor cores read it.
//
// Columns are cut into slabs of 64 (128 bytes). In a slab every row takes 128 bytes, and its eight 16-byte chunks are
// exchanged by (chunk XOR row mod 8): the 128-byte swizzle of both engines. A tile starts at a multiple of 1024 bytes.
#pragma once

#include <cstdint>

#include "kernels/ptx/ldst.cuh"

namespace ks::tile {

template <int kRows, int kColumns>
struct SmemTile {
  static constexpr int kSlabs = (kColumns + 63) / 64;
  static constexpr int kRowBytes = 128;
  static constexpr int kSlabBytes = kRows * kRowBytes;
  static constexpr int kBytes = kSlabs * kSlabBytes;
  static_assert(kSlabBytes % 1024 == 0, "slabs must keep the swizzle's period of 8 rows");

  /// Address of 16-byte chunk `chunk` (8 columns) of `row`.
  static __device__ __forceinline__ uint32_t chunk_address(uint32_t tile, int row, int chunk) {
    return tile + (chunk / 8) * kSlabBytes + row * kRowBytes + (((chunk % 8) ^ (row % 8)) << 4);
  }

  /// Descriptor of the tile read with its columns as the reduced dimension (Q and K): step k is columns 16k..16k+15.
  static __device__ __forceinline__ uint64_t k_major(uint32_t rows_address) {
    return descriptor(rows_address, 16, 1024);
  }
  static constexpr uint64_t k_major_step(int k) { return ((k / 4) * kSlabBytes + (k % 4) * 32) >> 4; }

  /// Descriptor of the tile read with its rows as the reduced dimension (V): step k is rows 16k..16k+15.
  static __device__ __forceinline__ uint64_t mn_major(uint32_t tile) { return descriptor(tile, kSlabBytes, 1024); }
  static constexpr uint64_t mn_major_step(int k) { return (k * 16 * kRowBytes) >> 4; }

  /// A descriptor moved on by a step. Only its address field moves: without a carry into the upper half, which then is
  /// a constant, the products of a block are issued back to back.
  static __device__ __forceinline__ uint64_t at_step(uint64_t descriptor, uint64_t step) {
    return ptx::mov_b64(static_cast<uint32_t>(descriptor) + static_cast<uint32_t>(step),
                        static_cast<uint32_t>(descriptor >> 32));
  }

 private:
  /// Shared-memory matrix descriptor: address, leading and stride offsets in 16-byte units, 128-byte swizzle.
  static __device__ __forceinline__ uint64_t descriptor(uint32_t address, uint32_t leading, uint32_t stride) {
    return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
           static_cast<uint64_t>(stride >> 4) << 32 | uint64_t{1} << 62;
  }
};

}  // namespace ks::tile
