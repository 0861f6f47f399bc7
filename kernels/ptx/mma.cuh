// Matrix products of one warp (PTX ISA, mma.sync.m16n8k16) and the loads of their fragments (ldmatrix).
//
// Fragments, lane l, q = l % 4. A (16 x 16): a0 = (row l/4, columns 2q, 2q+1), a1 = (row + 8, same), a2 = (row, columns
// + 8), a3 = (row + 8, columns + 8). B (16 x 8): b0 = (rows 2q, 2q+1, column l/4), b1 = (rows + 8, same). C (16 x 8):
// c0, c1 = (row l/4, columns 2q, 2q+1), c2, c3 = (row + 8, same).
#pragma once

#include <cstdint>

namespace ks::ptx {

/// C += A B in bfloat16, sums in fp32.
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                                  uint32_t b0, uint32_t b1) {
  asm(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
      " {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// The same in half precision.
__device__ __forceinline__ void mma_m16n8k16_f16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                                 uint32_t b0, uint32_t b1) {
  asm(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
      " {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// Four 8x8 matrices of 16-bit elements from shared memory; lane i gives the address of row i % 8 of matrix i / 8, and
/// gets (row l/4, columns 2q, 2q+1) of each.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// The same transposed: the lane gets (rows 2q, 2q+1, column l/4) of each.
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

}  // namespace ks::ptx
