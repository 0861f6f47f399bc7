// Attention forward on Hopper: one persistent kernel, loads by the copy engine, products by the tensor cores.
//
// 1. The algorithm (FlashAttention; one tile of query rows of one (member, kv head), key blocks from last to first)
//      (1) S = Q K_j^T                      scores of the block
//      (2) soft cap and mask
//      (3) m, l advance; S becomes P = exp2(scale (S - m)); alpha = how far the maximum moved
//      (4) O = alpha O
//      (5) O = O + P V_j
//    and at the end O = O / l, LSE = m + log l, with a sink's logit added to l. Step (1) of the next block is issued
//    before step (5) of this one, so that the tensor cores work while (2) and (3) run.
//
// 2. Who does what: warpgroups 0 .. n-1 compute, 64 rows each; the first warp after them loads.
//      barrier        who arrives                     who waits        count
//      works.full     load warp (work written)        compute warps    1
//      works.empty    compute warps (work done)       load warp        4 a warpgroup
//      q/k/v.full     load warp + bytes               compute warps    1 + bytes
//      q/k/v.empty    compute warps (done with it)    load warp        4 a warpgroup
//      turn (named)   the warpgroup before            this warpgroup   256 threads: products are issued in turns, so
//                                                                      that one group's softmax meets another's product
//      group (named)  warpgroup                       warpgroup        128 threads
//
// 3. Budget, registers a thread: O value_dim/2 + S block_keys/2 + P block_keys/4 and some 35 more, of 232 (two compute
//    warpgroups) or 160 (three). Shared memory: Q, K ring, V ring and 2 KB of barriers, of 227 KB. O is staged in Q.
//
// 4. Where to read on: forward_smem.cuh (the memory plan), forward_load.cuh (the load warp), forward_attend.cuh (the
//    main loop), forward_finish.cuh (the end of a tile), forward_parts.cuh (tiles whose keys are shared out),
//    forward_rows.cuh (which row is which).
#pragma once

#include <type_traits>

#include "kernels/fa3_hopper/forward_attend.cuh"
#include "kernels/fa3_hopper/forward_finish.cuh"
#include "kernels/fa3_hopper/forward_load.cuh"
#include "kernels/fa3_hopper/forward_parts.cuh"
#include "kernels/fa3_hopper/forward_smem.cuh"

namespace ks::fa3 {

template <ForwardConfig kC>
__device__ __forceinline__ void init_barriers(const ForwardParams& params, Smem<kC>& smem) {
  const int loaders = gathers<kC>(params) ? kC.load_threads() : 1;
  smem.q.init(1, 4 * kC.warpgroups);
  smem.k.init(loaders, 4 * kC.warpgroups);
  smem.v.init(loaders, 4 * kC.warpgroups);
  smem.works.init(1, 4 * kC.warpgroups + (gathers<kC>(params) ? kC.load_threads() / 32 - 1 : 0));
  ptx::fence_mbarrier_init();
}

/// One tile, or one part of its keys.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::do_work(const Work& work) {
  if constexpr (!kC.copies_work()) lane = ptx::lane_index_again();  // or addresses made from it are kept, and spill
  const bool has_keys = work.has_keys();
  if (kC.warpgroups > 1 && has_keys && !has_rows(work.tile)) return stand_by(work.plan);
  if (has_keys) attend(work);
  if (kC.may_split() && params.order.splits > 1) {
    has_keys ? finish_part(work.tile) : finish_empty_part(work.tile);
    combine_if_last(work.tile);
  } else {
    has_keys ? finish(work.tile) : store_rows_without_keys(work.tile);
  }
}

/// A copy of the work, or the work where it lies.
template <ForwardConfig kC>
using WorkOf = std::conditional_t<kC.copies_work(), const Work, const Work&>;

/// The compute role: work by work until there is none.
template <ForwardConfig kC>
__device__ __forceinline__ void attend_query_rows(const ForwardParams& params, Smem<kC>& smem) {
  const int warp = ptx::warp_index();
  Attender<kC> attender{params, smem, warp / 4, ptx::lane_index(), warp * 16};
  if (kC.takes_turns() && warp / 4 == kC.warpgroups - 1) attender.pass_turn();  // the first turn is group 0's
#pragma unroll 1
  while (true) {
    WorkOf<kC> work = attender.next_work();
    if (ptx::shfl(work.tile.member, 0) < 0) break;
    attender.do_work(work);
    attender.let_work_go();
  }
  attender.release_held_query();  // shared memory stays until it is read
}

// The entry.
// (Not a template over ForwardConfig itself: nvcc 13.0 emits a host stub for that which does not compile.)
template <ForwardShape kShape, Element kType, bool kSoftcap>
__global__ void __launch_bounds__(config_of(kShape, kType, kSoftcap).threads(),
                                  config_of(kShape, kType, kSoftcap).blocks_per_sm)
    attention_forward_sm90(const __grid_constant__ ForwardParams params) {
  constexpr ForwardConfig kC = config_of(kShape, kType, kSoftcap);
  extern __shared__ unsigned char memory[];
  static_assert(kC.is_valid() && sizeof(Smem<kC>) <= 232448 / kC.blocks_per_sm);
  Smem<kC>& smem = *reinterpret_cast<Smem<kC>*>(memory);
  if (ptx::thread_index() == kC.threads() - 32) {
    ptx::prefetch_tensormap(&params.query_map);
    ptx::prefetch_tensormap(&params.key_map);
    ptx::prefetch_tensormap(&params.value_map);
  }
  if (ptx::thread_index() == 0) init_barriers<kC>(params, smem);
  ptx::sync_block();
  const int warp = ptx::warp_index();
  if (warp < 4 * kC.warpgroups) {
    if constexpr (kC.moves_registers()) ptx::setmaxnreg_inc<kC.compute_registers()>();
    attend_query_rows<kC>(params, smem);
  } else {
    if constexpr (kC.moves_registers()) ptx::setmaxnreg_dec<kC.load_registers()>();
    if (warp == 4 * kC.warpgroups || gathers<kC>(params)) load_tiles<kC>(params, smem, warp - 4 * kC.warpgroups);
  }
}

}  // namespace ks::fa3
