// Key blocks from pages too small for boxes: every lane of the load warps copies 16 bytes at a time (cp.async), rows of a
// warp's groups of eight side by side. Pages of fewer than eight keys come this way.
#pragma once

#include "kernels/attention/parts/schedule.cuh"
#include "kernels/fa3_hopper/forward_params.h"
#include "kernels/ptx/ldst.cuh"
#include "kernels/ptx/mbarrier.cuh"

namespace ks::fa3 {

/// This warp's share (of `warps`) of the block of kKeys keys that starts at first_key. Keys past the member's last stay as
/// they are: their scores are masked, their values zeroed before use. The barrier gets one arrival a lane once its bytes
/// have landed.
template <typename SmemTile, int kKeys, int kColumns>
__device__ __forceinline__ void gather_block(const ForwardParams& params, const void* base, const CacheStrides& strides,
                                             const attention::Tile& tile, int first_key, uint32_t slot, uint32_t barrier,
                                             int warp, int warps) {
  constexpr int kChunks = kColumns / 8;
  const int lane = ptx::lane_index();
  const int32_t* table = params.problem.page_table + int64_t{tile.member} * params.problem.page_table_stride;
  const char* head = static_cast<const char*>(base) + tile.kv_head * strides.head_bytes;
#pragma unroll 1
  for (int row0 = 8 * warp; row0 < kKeys; row0 += 8 * warps) {
    const int key = first_key + row0 + lane % 8;
    int page = 0;
    int row_in_page = 0;
    if (key < tile.keys) {
      const int entry = params.page_shift >= 0 ? key >> params.page_shift : key / params.problem.page_size;
      page = ptx::ld_global_nc(table + entry);
      row_in_page = key - entry * params.problem.page_size;
    }
#pragma unroll 1  // the load warps have few registers
    for (int i = 0; i < kChunks / 4; ++i) {
      const int row = (i * 32 + lane) / kChunks;
      const int chunk = (i * 32 + lane) % kChunks;
      const char* from = head + ptx::shfl(page, row) * strides.page_bytes + ptx::shfl(row_in_page, row) * strides.key_bytes;
      if (first_key + row0 + row < tile.keys) {
        const bool exists = chunk * 8 < strides.columns;
        ptx::cp_async_16(SmemTile::chunk_address(slot, row0 + row, chunk), exists ? from + 16 * chunk : head,
                         exists ? 16 : 0);
      }
    }
  }
  ptx::cp_async_mbarrier_arrive_noinc(barrier);
}

}  // namespace ks::fa3
