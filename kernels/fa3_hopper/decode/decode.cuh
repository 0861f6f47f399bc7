// Attention of few query rows over many keys on Hopper: one kernel a call, bound by how fast keys and values arrive.
//
// 1. The algorithm, for a tile: all query rows of one (member, kv head), R = positions x query heads a kv head <= 32
//      (1) S = Q K_j^T                     16 keys of the block a warp
//      (2) soft cap, and a mask at the edges
//      (3) m, l of these keys advance; S becomes P = exp2(scale (S - m))
//      (4) O^T = alpha O^T + V_j^T P^T     the operands exchanged, so that P^T is a register operand as it stands, and
//                                          eight rows cost a quarter of what 32 cost
//      (5) the warps' (m, l, O) of a tile are merged through shared memory; a whole tile is written, with its sink
//      (6) of a tile that several workers share, each leaves its merged part in scratch memory, and the last to arrive
//          sums all parts in their order (so the result does not depend on who was last), writes the rows and sets the
//          tile's counter back to zero
//    partition.h says which worker (block of threads) does which keys: all get the same number of key blocks.
//
// 2. Who does what: warps 0 to 3 compute, warp 4 finds the work and loads.
//      barrier       who arrives                         who waits        count
//      pieces.full   load warp (piece written) + bytes   compute warps    1 + bytes of Q
//      pieces.empty  compute warps (piece and Q read)    load warp        4
//      kv.full       load warp + bytes                   compute warps    1 + bytes (32 where keys are gathered)
//      kv.empty      compute warps (done with it)        load warp        4
//      kMerge        compute warps, before and after the merge buffer is written   128 threads
//    No warp waits for another one's keys: each has its own maximum, and its own output over all columns.
//
// 3. Budget, registers a thread: O dim x R / 32 (32 for 128 columns and 8 rows), Q at most 32, S 8 to 16; 168 with two
//    blocks a multiprocessor, 255 with one (more than 16 rows, or 256 columns). Shared memory: a ring of slots of 64
//    keys or 64 values each, in turns, 128 KB a multiprocessor; two queries; one merge buffer.
//
// e4m3 keys and values are expanded to the query's type between shared memory and product by moving bits; the power of
// two that this leaves (expand_e4m3.cuh) is split between Q and P on one side and the sums on the other, so that no
// product leaves the range of fp32.
#pragma once

#include "kernels/fa3_hopper/decode/decode_attend.cuh"
#include "kernels/fa3_hopper/decode/decode_load.cuh"

namespace ks::fa3 {

// (Not a template over DecodeConfig itself: nvcc 13.0 emits a host stub for that which does not compile.)
template <int kShape, Element kType, bool kE4m3>
__global__ void __launch_bounds__(DecodeConfig::kBlockThreads, decode_config(kShape, kType, kE4m3).blocks_per_sm())
    attention_decode_sm90(const __grid_constant__ DecodeParams params) {
  constexpr DecodeConfig kC = decode_config(kShape, kType, kE4m3);
  extern __shared__ unsigned char memory[];
  static_assert(kC.is_valid() && sizeof(DecodeSmem<kC>) <= 232448 / kC.blocks_per_sm() - 1024);
  DecodeSmem<kC>& smem = *reinterpret_cast<DecodeSmem<kC>*>(memory);
  const int warp = ptx::warp_index();
  if (ptx::thread_index() == 0) {
    smem.pieces.init(1, DecodeConfig::kWarps);
    smem.kv.init(params.gathers ? 32 : 1, DecodeConfig::kWarps);
    ptx::fence_mbarrier_init();
  }
  if (warp == DecodeConfig::kWarps) {
    DecodeLoader<kC> loader(params, smem);
    loader.run();
  } else {
    ptx::sync_block();
    DecodeAttender<kC> attender(params, smem);
    attender.run();
  }
}

}  // namespace ks::fa3
