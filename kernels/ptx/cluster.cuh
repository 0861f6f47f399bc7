// Clusters of blocks: who this block is among them, barriers of the whole cluster, arrivals at a barrier in another
// block's shared memory, and boxes that land in several blocks at once (PTX ISA, barrier.cluster, mapa, multicast).
#pragma once

#include <cuda.h>

#include <cstdint>

namespace ks::ptx {

/// This block's place in its cluster.
__device__ __forceinline__ int cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return static_cast<int>(rank);
}

/// Every thread of every block of the cluster arrives, then waits for all.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

/// The address, for use from this block, of what lies at `address` in the shared memory of block `rank`.
__device__ __forceinline__ uint32_t mapa_shared(uint32_t address, int rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

/// One arrival at a barrier whose address mapa_shared gave.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

/// As cp_async_bulk_tensor_4d_load, into every block of the cluster whose bit is set in `blocks`: to the same place,
/// with the bytes counted on the same barrier of each.
__device__ __forceinline__ void cp_async_bulk_tensor_4d_load_multicast(uint32_t destination, const CUtensorMap* map,
                                                                       int c0, int c1, int c2, int c3, uint32_t barrier,
                                                                       uint16_t blocks, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7, %8;\n" ::"r"(destination),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(barrier), "h"(blocks), "l"(policy)
      : "memory");
}

/// Asks for a box to be brought to L2, into no shared memory.
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_4d(const CUtensorMap* map, int c0, int c1, int c2,
                                                                 int c3) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];\n" ::"l"(map), "r"(c0), "r"(c1),
               "r"(c2), "r"(c3)
               : "memory");
}

}  // namespace ks::ptx
