// MLA decode on Hopper: attention over a latent cache in which the first 512 of a key's 576 columns are also its value.
//
// 1. The algorithm (a tile of 64 query rows of one member; key blocks of 64 in order)
//      (1) S = Q K_j^T                      all 576 columns
//      (2) mask
//      (3) m, l advance; S becomes P = exp2(scale (S - m)); alpha = how far the maximum moved
//      (4) O = alpha O
//      (5) O = O + P V_j                    V_j: the first 512 columns of K_j, in place
//    O (64 x 512) needs the registers of two warpgroups: each holds half of the columns. Blocks are owned in turns: the
//    owner does (1) to (3), publishes P, m and alpha, and both do (4) and (5) for their half. While one group weighs
//    its block, the tensor cores work on the other's scores. A pair of blocks of threads (a cluster) may take two tiles
//    of the same member, and every key block then comes from memory once: each loads half of its slabs into the shared
//    memory of both.
//
// 2. Who does what: warpgroups 0 and 1 compute; the first warp after them loads.
//      barrier          who arrives                       who waits           count
//      parts.full       load warp (part written)          compute warps       1
//      parts.empty      compute warps (part read)         load warp           8
//      q.full           load warp + bytes                 compute warps       1 + bytes
//      q.empty          compute warps (done with Q)       load warp           8
//      full[slot][s]    load warp + bytes of slab s       owner; both for V   1 + bytes
//      empty[slot][g]   group g of all blocks in cluster  load warp           4 a block
//      ready (named)    owner of the block                the other group     256 threads
//      both (named)     both groups                       both groups         256 threads
//      group (named)    a group                           that group          128 threads
//    P of a block goes where its last 64 key columns (which are in no value) were.
//
// 3. Budget, registers a thread: O 128 + S 32 + P 16 and some 40 more, of 232. Shared memory: Q 72 KB + two slots of
//    72 KB, of 227 KB. The output is staged in Q.
#pragma once

#include "kernels/fa3_hopper/mla/mla_attend.cuh"
#include "kernels/fa3_hopper/mla/mla_finish.cuh"
#include "kernels/fa3_hopper/mla/mla_load.cuh"

namespace ks::fa3::mla {

/// What the compute warpgroups do: parts, one after the other.
template <MlaConfig kC>
__device__ __forceinline__ void attend_query_rows(const MlaParams& params, Smem& smem) {
  const int warp = ptx::warp_index();
  Attender<kC> attender{params, smem, warp / 4, ptx::lane_index(), warp % 4 * 16, ptx::block_index()};
  while (true) {
    const Part part = attender.next_part();
    if (part.member < 0) break;
    smem.q.wait_full(attender.q);  // also without a block to attend to: the output goes through Q's memory
    if (part.blocks > 0) attender.attend(part);
    if (part.parts == 1) {
      attender.finish_whole(part);
    } else {
      part.blocks > 0 ? attender.finish_part(part) : attender.finish_empty_part(part);
      if (attender.is_last_part(part)) attender.combine(part);
    }
    smem.q.release(attender.q);
    attender.q.advance();
  }
}

// 6. The entry.
template <Element kType, int kCluster, int kEarlySlabs>
__global__ void __launch_bounds__(kThreads, 1) mla_forward_sm90(const __grid_constant__ MlaParams params) {
  constexpr MlaConfig kC = {kType, kCluster, kEarlySlabs};
  static_assert(kC.is_valid());
  extern __shared__ unsigned char memory[];
  Smem& smem = *reinterpret_cast<Smem*>(memory);
  if (ptx::thread_index() == 256) {
    ptx::prefetch_tensormap(&params.latent_map);
    ptx::prefetch_tensormap(&params.rope_map);
    ptx::prefetch_tensormap(&params.key_map);
  }
  if (ptx::thread_index() == 0) {
    smem.q.init(1, 8);
    smem.parts.init(1, 8);
    for (int slot = 0; slot < 2; ++slot) {
      for (int slab = 0; slab < Smem::KTile::kSlabs; ++slab) ptx::mbarrier_init(smem.full(slot, slab), 1);
      for (int group = 0; group < 2; ++group) ptx::mbarrier_init(smem.empty(slot, group), 4 * kCluster);
    }
    ptx::fence_mbarrier_init();
  }
  if constexpr (kCluster > 1) {
    ptx::cluster_arrive();
    ptx::cluster_wait();
  } else {
    ptx::sync_block();
  }
  const int warp = ptx::warp_index();
  if (warp < 8) {
    ptx::setmaxnreg_inc<232>();
    attend_query_rows<kC>(params, smem);
  } else {
    ptx::setmaxnreg_dec<40>();
    if (warp == 8) load_parts<kC>(params, smem);
    ptx::sync_warp();
  }
  if constexpr (kCluster > 1) {  // the other block may still arrive here, or bring keys
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
}

}  // namespace ks::fa3::mla
