// Fences between the ordinary and the asynchronous ways to shared memory, and named barriers (PTX ISA, fence, bar).
#pragma once

#include <cstdint>

namespace ks::ptx {

/// Orders this thread's ordinary shared-memory accesses before later ones of the tensor cores and the copy engine.
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

/// Arrives at named barrier `id` and waits for `threads` arrivals.
__device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

/// Arrives at named barrier `id` without waiting.
__device__ __forceinline__ void bar_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

/// Orders this thread's global accesses before later ones, as every thread of the device sees them.
__device__ __forceinline__ void fence_device() {
  asm volatile("fence.acq_rel.gpu;\n" ::: "memory");
}

/// Hands registers of the warpgroup back, down to kCount a thread.
template <int kCount>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kCount));
}

/// Takes registers for the warpgroup, up to kCount a thread.
template <int kCount>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kCount));
}

}  // namespace ks::ptx
