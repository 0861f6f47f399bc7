// Loads and stores: shared memory by 32-bit address, matrices, read-only and vector global accesses, atomics.
#pragma once

#include <cstdint>

namespace ks::ptx {

/// The 32-bit shared-memory address of a pointer into shared memory.
__device__ __forceinline__ uint32_t cvta_shared(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// A 64-bit value of two halves; the compiler does no arithmetic across them.
__device__ __forceinline__ uint64_t mov_b64(uint32_t low, uint32_t high) {
  uint64_t value;
  asm("mov.b64 %0, {%1, %2};\n" : "=l"(value) : "r"(low), "r"(high));
  return value;
}

/// Four 8x8 matrices of 16-bit elements to shared memory; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void stmatrix_x4(uint32_t address, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(r0), "r"(r1),
               "r"(r2), "r"(r3)
               : "memory");
}

/// Sixteen bytes from shared memory.
__device__ __forceinline__ uint4 ld_shared_v4(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

/// Eight bytes from shared memory.
__device__ __forceinline__ uint2 ld_shared_v2(uint32_t address) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];\n" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
  return v;
}
/// Sixteen bytes to shared memory.
__device__ __forceinline__ void st_shared_v4(uint32_t address, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

/// Sixteen bytes to global memory.
__device__ __forceinline__ void st_global_v4(void* address, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"l"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

__device__ __forceinline__ void st_global_v4(float* address, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"l"(address), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}
__device__ __forceinline__ void st_global_v4(float* address, float x, float y, float z, float w) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"l"(address), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

/// Eight bytes to global memory.
__device__ __forceinline__ void st_global_v2(float* address, float x, float y) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};\n" ::"l"(address), "f"(x), "f"(y) : "memory");
}
__device__ __forceinline__ void st_global_v2(void* address, uint32_t x, uint32_t y) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};\n" ::"l"(address), "r"(x), "r"(y) : "memory");
}

/// Four and sixteen bytes of global memory that other blocks wrote in this kernel: from L2, never from L1.
__device__ __forceinline__ float ld_global_cg(const float* address) {
  float v;
  asm volatile("ld.global.cg.f32 %0, [%1];\n" : "=f"(v) : "l"(address) : "memory");
  return v;
}
__device__ __forceinline__ float4 ld_global_cg_v4(const float* address) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];\n"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(address)
               : "memory");
  return v;
}

__device__ __forceinline__ float2 ld_global_cg_v2(const float* address) {
  float2 v;
  asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];\n" : "=f"(v.x), "=f"(v.y) : "l"(address) : "memory");
  return v;
}
/// A word of memory that nothing writes during the kernel.
__device__ __forceinline__ int32_t ld_global_nc(const int32_t* address) {
  int32_t v;
  asm volatile("ld.global.nc.s32 %0, [%1];\n" : "=r"(v) : "l"(address));
  return v;
}

/// Copies 16 bytes from global to shared memory in the background; of the source only `bytes` are read, the rest is
/// zero.
__device__ __forceinline__ void cp_async_16(uint32_t destination, const void* source, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(destination), "l"(source), "r"(bytes)
               : "memory");
}

/// Closes a group of this thread's cp.async copies.
__device__ __forceinline__ void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/// Waits until at most kPending of this thread's groups have not landed.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

/// One arrival at the barrier once all earlier cp.async of this thread have landed; it counts among those expected.
__device__ __forceinline__ void cp_async_mbarrier_arrive_noinc(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n" ::"r"(barrier) : "memory");
}

/// Adds to a global counter and returns what it held before.
__device__ __forceinline__ int32_t atom_add_global(int32_t* address, int32_t value) {
  int32_t before;
  asm volatile("atom.global.add.s32 %0, [%1], %2;\n" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}

/// Writes a word of global memory.
__device__ __forceinline__ void st_global(int32_t* address, int32_t value) {
  asm volatile("st.global.s32 [%0], %1;\n" ::"l"(address), "r"(value) : "memory");
}

}  // namespace ks::ptx
