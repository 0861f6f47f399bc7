// Attention forward for e4m3 queries, keys and values on Hopper: the algorithm, the roles, the entry. Then read
// configs.h, fp8_smem.cuh, fp8_load.cuh, fp8_attend.cuh and fp8_finish.cuh.
//
// 1. The algorithm is that of ../forward.cuh, but for three things.
//    - The tensor cores add 8-bit products up with fewer bits than binary32 has, so that a sum must not grow long in
//      them: every block's output product starts from zero, and is added to O in binary32 by the instruction that
//      rescales O:  O = alpha O + T,  T = P V_j.
//    - They take 8-bit operands with the reduced dimension contiguous only: V is transposed in shared memory by three
//      warps, between its arrival and its use (turn_values.cuh).
//    - Weights are scaled by 2^8 before they are rounded; the query's and the key's descale join the softmax scale, the
//      value's the final factor.
//
// 2. Who does what: warpgroups 0 and 1 compute, 64 rows each; of the four warps after them the first loads, the others
//    transpose V.
//      barrier        who arrives                     who waits             count
//      tiles.full     load warp (tile written)        all other warps       1
//      tiles.empty    those warps (tile read)         load warp             11
//      q/k.full       load warp + bytes               compute warps         1 + bytes
//      q/k.empty      compute warps (done with it)    load warp             8
//      raw.full       load warp + bytes               turning warps         1 + bytes
//      raw.empty      turning warps                   load warp             3
//      v.full         turning warps (V transposed)    compute warps         3
//      v.empty        compute warps                   turning warps         8
//      turn (named)   the warpgroup before            this warpgroup        256 threads
//    Exponentials are taken in turns: else all groups wait for the same unit, and then for the tensor cores, together.
//
// 3. Budget, registers a thread: Fp8Config::registers() and some 25 more, of 232. Shared memory: Q, the rings of K, of
//    V as it arrives and of V transposed, of 227 KB.
#pragma once

#include "kernels/fa3_hopper/fp8/fp8_attend.cuh"
#include "kernels/fa3_hopper/fp8/fp8_finish.cuh"
#include "kernels/fa3_hopper/fp8/fp8_load.cuh"

namespace ks::fa3::fp8 {

/// What the compute warpgroups do: tiles, one after the other.
template <Fp8Config kC>
__device__ __forceinline__ void attend_query_rows(const Fp8Params& params, Smem<kC>& smem) {
  const int warp = ptx::warp_index();
  Attender<kC> attender{params, smem, warp / 4, ptx::lane_index(), warp * 16};
  if (warp / 4 == kC.warpgroups - 1) attender.pass_turn();  // the first turn is group 0's
  while (true) {
    const Tile tile = next_tile(smem, attender.tiles);
    if (tile.member < 0) break;
    const BlockPlan plan = plan_of<kC>(params, tile);
    if (plan.end <= plan.begin) {
      attender.store_rows_without_keys(tile);
    } else if (attender.group * 64 >= attender.existing_rows(tile)) {
      attender.stand_by(plan);
    } else {
      attender.attend(tile, plan);
      attender.finish(tile);
    }
  }
}

// 6. The entry.
template <Fp8Shape kShape>
__global__ void __launch_bounds__(kFp8Shapes[static_cast<int>(kShape)].threads(), 1)
    attention_fp8_sm90(const __grid_constant__ Fp8Params params) {
  constexpr Fp8Config kC = kFp8Shapes[static_cast<int>(kShape)];
  static_assert(kC.is_valid() && sizeof(Smem<kC>) <= 232448);
  extern __shared__ unsigned char memory[];
  Smem<kC>& smem = *reinterpret_cast<Smem<kC>*>(memory);
  if (ptx::thread_index() == 128 * kC.warpgroups) {
    ptx::prefetch_tensormap(&params.query_map);
    ptx::prefetch_tensormap(&params.key_map);
    ptx::prefetch_tensormap(&params.value_map);
  }
  if (ptx::thread_index() == 0) {
    smem.q.init(1, 4 * kC.warpgroups);
    smem.k.init(1, 4 * kC.warpgroups);
    smem.raw.init(1, kTurners);
    smem.v.init(kTurners, 4 * kC.warpgroups);
    smem.tiles.init(1, 4 * kC.warpgroups + kTurners);
    ptx::fence_mbarrier_init();
  }
  ptx::sync_block();
  const int warp = ptx::warp_index();
  if (warp < 4 * kC.warpgroups) {
    ptx::setmaxnreg_inc<kC.compute_registers()>();
    attend_query_rows<kC>(params, smem);
  } else {
    ptx::setmaxnreg_dec<kC.load_registers()>();
    if (warp == 4 * kC.warpgroups) {
      load_tiles<kC>(params, smem);
    } else {
      turn_tiles<kC>(params, smem, warp - 4 * kC.warpgroups - 1);
    }
  }
}

}  // namespace ks::fa3::fp8
