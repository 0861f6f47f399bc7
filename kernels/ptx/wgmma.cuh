// Ordering of asynchronous warpgroup matrix products (PTX ISA, wgmma.fence / commit_group / wait_group). The products
// themselves are in wgmma_mma.cuh.
#pragma once

#include "kernels/ptx/wgmma_mma.cuh"

namespace ks::ptx {

/// Orders earlier register writes (accumulators, A fragments) before the products that follow.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

/// Closes a group of products issued so far.
__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

/// Waits until at most kPending groups are still running.
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}

/// No instruction: tells the compiler that the register changes here, so that no use of it moves above a wait.
__device__ __forceinline__ void pin_register(float& value) {
  asm volatile("" : "+f"(value)::"memory");
}
__device__ __forceinline__ void pin_register(uint32_t& value) {
  asm volatile("" : "+r"(value)::"memory");
}

}  // namespace ks::ptx
