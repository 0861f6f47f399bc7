// Copies of tensor boxes by the copy engine (PTX ISA, cp.async.bulk.tensor) and of plain byte ranges (cp.async.bulk).
#pragma once

#include <cuda.h>

#include <cstdint>

namespace ks::ptx {

/// Cache policies of the copy engine, as createpolicy would encode them.
inline constexpr uint64_t kEvictNormal = 0x1000000000000000ull;
inline constexpr uint64_t kEvictFirst = 0x12F0000000000000ull;
inline constexpr uint64_t kEvictLast = 0x14F0000000000000ull;

/// Fetches a tensor map into its cache.
__device__ __forceinline__ void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

/// Copies the box at (c0, c1, c2, c3) to shared memory; its bytes are counted on `barrier`, outside elements are zero.
__device__ __forceinline__ void cp_async_bulk_tensor_4d_load(uint32_t destination, const CUtensorMap* map, int c0,
                                                             int c1, int c2, int c3, uint32_t barrier,
                                                             uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3, %4, %5}], [%6], %7;\n" ::"r"(destination),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(barrier), "l"(policy)
      : "memory");
}

/// The same for a tensor of five dimensions.
__device__ __forceinline__ void cp_async_bulk_tensor_5d_load(uint32_t destination, const CUtensorMap* map, int c0,
                                                             int c1, int c2, int c3, int c4, uint32_t barrier,
                                                             uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;\n" ::"r"(destination),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(barrier), "l"(policy)
      : "memory");
}
/// Copies a box from shared memory to (c0, c1, c2, c3); elements outside the tensor are not written.
__device__ __forceinline__ void cp_async_bulk_tensor_4d_store(const CUtensorMap* map, uint32_t source, int c0, int c1,
                                                              int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];\n" ::"l"(map),
               "r"(source), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}

/// Closes a group of this thread's bulk stores.
__device__ __forceinline__ void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}

/// Waits until this thread's bulk stores have read their shared memory.
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");
}

}  // namespace ks::ptx
