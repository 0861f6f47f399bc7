// A ring of shared-memory slots between a loading warp and the warps that use what it loads.
//
// Every slot has two barriers: full (bytes have landed) and empty (all users have let go). Both sides walk the ring
// with a RingPosition; its parity flips each time it wraps.
#pragma once

#include "kernels/ptx/ldst.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/warp.cuh"

namespace ks::tile {

/// Waits until the phase of this parity has ended.
__device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

template <int kSlots>
struct RingPosition {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++slot == kSlots) {
      slot = 0;
      parity ^= 1;
    }
  }
};

/// The barriers of a ring, by shared-memory address.
template <int kSlots>
struct Ring {
  uint64_t full_barriers[kSlots];
  uint64_t empty_barriers[kSlots];

  static constexpr int kSlotCount = kSlots;

  __device__ __forceinline__ uint32_t full(int slot) const { return ptx::cvta_shared(&full_barriers[slot]); }
  __device__ __forceinline__ uint32_t empty(int slot) const { return ptx::cvta_shared(&empty_barriers[slot]); }

  __device__ __forceinline__ void init(int producers, int users) const {
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(full(slot), producers);
      ptx::mbarrier_init(empty(slot), users);
    }
  }

  /// User side: waits for the slot's bytes, and lets the slot go (one call a warp).
  __device__ __forceinline__ void wait_full(const RingPosition<kSlots>& at) const { wait(full(at.slot), at.parity); }
  __device__ __forceinline__ void release(const RingPosition<kSlots>& at) const {
    if (ptx::lane_index() == 0) ptx::mbarrier_arrive(empty(at.slot));
  }

  /// Loader side: waits until the slot may be overwritten; the first round never waits.
  __device__ __forceinline__ void wait_empty(const RingPosition<kSlots>& at) const {
    wait(empty(at.slot), at.parity ^ 1);
  }
};

}  // namespace ks::tile
