// Key blocks from pages too small for boxes: every lane of the load warps copies 16 bytes at a time (cp.async), rows of
// a warp's groups of eight side by side. Pages of fewer than eight keys come this way.
#pragma once

#include "kernels/attention/parts/schedule.cuh"
#include "kernels/fa3_hopper/forward_params.h"
#include "kernels/ptx/ldst.cuh"
#include "kernels/ptx/mbarrier.cuh"

namespace ks::fa3 {

/// Where a key lies in the cache.
struct PagePlace {
  int page;
  int row;
};

/// The place of a key; any place if the member has no such key.
__device__ __forceinline__ PagePlace find_place(const ForwardParams& params, const attention::Tile& tile, int key) {
  if (key < 0 || key >= tile.keys) return {0, 0};
  const int entry = params.page_shift >= 0 ? key >> params.page_shift : key / params.problem.page_size;
  const int32_t* table = params.problem.page_table + int64_t{tile.member} * params.problem.page_table_stride;
  return {ptx::ld_global_nc(table + entry), key - entry * params.problem.page_size};
}

/// This warp's share (of `warps`, a run of rows) of the block of kKeys keys that starts at first_key; `own` is the
/// place of its row number `lane`. Keys past the member's last stay as they are: their scores are masked, their values
/// zeroed before use. The barrier gets one arrival a lane once its bytes have landed.
template <typename SmemTile, int kKeys, int kColumns>
__device__ __forceinline__ void gather_block(const ForwardParams& params, const void* base, const CacheStrides& strides,
                                             const attention::Tile& tile, int first_key, PagePlace own, uint32_t slot,
                                             uint32_t barrier, int warp, int warps) {
  constexpr int kChunks = kColumns / 8;
  const int lane = ptx::lane_index();
  const int rows = kKeys / warps;
  const char* head = static_cast<const char*>(base) + tile.kv_head * strides.head_bytes;
#pragma unroll 1  // the load warps have few registers
  for (int first = 0; first < rows; first += 32) {
    const int row0 = warp * rows + first;
    if (first > 0) own = find_place(params, tile, first_key + row0 + lane);
#pragma unroll 4
    for (int i = 0; i < kChunks; ++i) {
      const int row = (i * 32 + lane) / kChunks;
      const int chunk = (i * 32 + lane) % kChunks;
      const char* from =
          head + ptx::shfl(own.page, row) * strides.page_bytes + ptx::shfl(own.row, row) * strides.key_bytes;
      if (first + row < rows && first_key + row0 + row < tile.keys) {
        const bool exists = chunk * 8 < strides.columns;
        ptx::cp_async_16(SmemTile::chunk_address(slot, row0 + row, chunk), exists ? from + 16 * chunk : head,
                         exists ? 16 : 0);
      }
    }
  }
  ptx::cp_async_mbarrier_arrive_noinc(barrier);
}

}  // namespace ks::fa3
