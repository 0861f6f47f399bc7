// Who this thread is, and exchanges within its warp: thin names over the compiler's intrinsics.
#pragma once

#include <cstdint>

namespace ks::ptx {

inline constexpr uint32_t kAllLanes = 0xffffffffu;

__device__ __forceinline__ int thread_index() {
  return static_cast<int>(threadIdx.x);
}
__device__ __forceinline__ int lane_index() {
  return static_cast<int>(threadIdx.x & 31u);
}

/// The lane once more, as a value of its own: what is computed from it here is not kept from before a loop.
__device__ __forceinline__ int lane_index_again() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;\n" : "=r"(lane));
  return lane;
}

/// The warp's index in its block, held uniformly so that branches on it are uniform.
__device__ __forceinline__ int warp_index() {
  return __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x / 32u), 0);
}

__device__ __forceinline__ int block_index() {
  return static_cast<int>(blockIdx.x);
}
__device__ __forceinline__ int block_count() {
  return static_cast<int>(gridDim.x);
}
__device__ __forceinline__ void sync_block() {
  __syncthreads();
}
__device__ __forceinline__ void sync_warp() {
  __syncwarp();
}
__device__ __forceinline__ float shfl_xor(float value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}
__device__ __forceinline__ int shfl_xor(int value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}
__device__ __forceinline__ int shfl(int value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
__device__ __forceinline__ float shfl(float value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
__device__ __forceinline__ int shfl_up(int value, int lanes) {
  return __shfl_up_sync(kAllLanes, value, lanes);
}
/// Sum and maximum over the warp, the same in all lanes.
__device__ __forceinline__ int redux_add(int value) {
  return __reduce_add_sync(kAllLanes, value);
}
__device__ __forceinline__ int redux_max(int value) {
  return __reduce_max_sync(kAllLanes, value);
}
__device__ __forceinline__ uint32_t ballot(bool claim) {
  return __ballot_sync(kAllLanes, claim);
}
__device__ __forceinline__ bool any(bool claim) {
  return __any_sync(kAllLanes, claim);
}
__device__ __forceinline__ int find_first_set(uint32_t bits) {
  return __ffs(static_cast<int>(bits));
}

/// True in one lane of the warp, the same one each time, and known to be one: the compiler issues copies without a loop
/// over lanes.
__device__ __forceinline__ bool elect_one() {
  uint32_t elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}\n" : "=r"(elected));
  return elected != 0;
}

/// Ends the program with an error.
__device__ __forceinline__ void trap() {
  __trap();
}

}  // namespace ks::ptx
