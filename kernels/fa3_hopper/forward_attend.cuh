// The compute warpgroups of the forward kernel: the main loop over key blocks.
#pragma once

#include "kernels/attention/parts/mask.cuh"
#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/fa3_hopper/forward_load.cuh"
#include "kernels/fa3_hopper/forward_rows.cuh"
#include "kernels/fa3_hopper/forward_smem.cuh"
#include "kernels/ptx/fence.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/tile/matmul.cuh"

namespace ks::fa3 {

namespace barrier_id {
inline constexpr int kTurn = 1;   // + warpgroup
inline constexpr int kGroup = 5;  // + warpgroup
}  // namespace barrier_id

template <ForwardConfig kC>
struct Attender {
  using Plan = Smem<kC>;
  static constexpr int kScoreRegs = kC.block_keys / 2;
  static constexpr int kSteps = kC.block_keys / 16;

  const ForwardParams& params;
  Plan& smem;
  const int group;  ///< which compute warpgroup
  int lane;
  const int warp_row;  ///< first row of this warp in the tile
  RingPosition<kC.query_slots> q;
  RingPosition<kC.stages> k;
  RingPosition<kC.stages> v;
  RingPosition<kWorkSlots> works;
  bool holds_query = false;  ///< the slot of the tile before is not yet released

  float O[kC.value_dim / 2];
  uint32_t P[kSteps][4];
  attention::RowSoftmax softmax;

  /// What is to be done next; it stays where it is until it is let go.
  __device__ __forceinline__ const Work& next_work() {
    smem.works.wait_full(works);
    return smem.work[works.slot];
  }
  __device__ __forceinline__ void let_work_go() {
    ptx::sync_warp();
    smem.works.release(works);
    works.advance();
  }

  __device__ __forceinline__ void wait_turn() const {
    if constexpr (kC.takes_turns()) ptx::bar_sync(barrier_id::kTurn + group, 256);
  }
  __device__ __forceinline__ void pass_turn() const {
    if constexpr (kC.takes_turns()) {
      ptx::bar_arrive(barrier_id::kTurn + (group + 1 == kC.warpgroups ? 0 : group + 1), 256);
    }
  }

  /// Waits for a block; gathered bytes came the ordinary way and are handed over to the tensor cores here.
  __device__ __forceinline__ void wait_keys() const {
    smem.k.wait_full(k);
    if (gathers<kC>(params)) ptx::fence_proxy_async_shared();
  }
  __device__ __forceinline__ void wait_values() const {
    smem.v.wait_full(v);
    if (gathers<kC>(params)) ptx::fence_proxy_async_shared();
  }

  /// (1) issued: S = Q K^T.
  __device__ __forceinline__ void issue_scores(float (&S)[kScoreRegs]) {
    const uint64_t rows = Plan::QTile::k_major(ptx::cvta_shared(smem.sQ[q.slot]) + group * 64 * 128);
    const uint64_t keys = Plan::KTile::k_major(ptx::cvta_shared(smem.sK[k.slot]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kC.key_dim / 16; ++step) {
      // Up to eight descriptors of Q are kept in uniform registers; sixteen would push others out into memory.
      const uint64_t query_step = Plan::QTile::k_major_step(step);
      tile::matmul_shared<kC.type>(S, kC.key_dim > 128 ? Plan::QTile::at_step(rows, query_step) : rows + query_step,
                                   Plan::KTile::at_step(keys, Plan::KTile::k_major_step(step)), step > 0);
    }
    ptx::wgmma_commit_group();
  }

  /// (5) issued: O += P V.
  __device__ __forceinline__ void issue_output() {
    const uint64_t values = Plan::VTile::mn_major(ptx::cvta_shared(smem.sV[v.slot]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      tile::matmul_registers<kC.type>(O, P[step], Plan::VTile::at_step(values, Plan::VTile::mn_major_step(step)), 1);
    }
    ptx::wgmma_commit_group();
  }

  /// (2), and the maxima of (3). What the mask is made of is read where it is needed: registers are short.
  template <bool kMasked>
  __device__ __forceinline__ bool take_scores(float (&S)[kScoreRegs], const Work& work, int block) {
    if constexpr (kC.softcap) {
#pragma unroll
      for (int i = 0; i < kScoreRegs; ++i) S[i] = ptx::tanh_approx(S[i] * params.cap_scale);
    }
    if constexpr (kMasked) {
      const attention::RowMask mask = row_mask(params, work.tile, warp_row + lane / 4);
      mask.apply(S, work.first_key(block, kC.block_keys), lane % 4, params.problem.window_left,
                 params.problem.window_right);
    }
    return softmax.raise(S, params.scale_log2);
  }

  __device__ __forceinline__ void pack_weights(const float (&S)[kScoreRegs]) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) P[step][i] = tile::pack<kC.type>(S[8 * step + 2 * i], S[8 * step + 2 * i + 1]);
    }
  }

  /// ptxas would move the wait for the output product above all exponentials. A branch that hangs on the sum of the
  /// first row of each thread, and is never taken, keeps it in the middle: the product has run meanwhile, and what
  /// remains (the other row, packing, the rescale) is done side by side.
  __device__ __forceinline__ void hold_until_half_weighed() const {
    if (softmax.l[0] < 0.0f) ptx::trap();
  }

  /// (4)
  __device__ __forceinline__ void rescale() {
#pragma unroll
    for (int i = 0; i < kC.value_dim / 2; ++i) O[i] *= softmax.alpha[(i / 2) % 2];
  }

  /// Values past the member's last key may be anything, and 0 x NaN is NaN: zero their rows. Every warpgroup writes the
  /// same zeros for itself, so none waits for another.
  __device__ __forceinline__ void zero_values_from(int first_row) {
    constexpr int kChunks = Plan::VTile::kSlabs * 8;
    const uint32_t slot = ptx::cvta_shared(smem.sV[v.slot]);
    for (int i = first_row * kChunks + ptx::thread_index() % 128; i < kC.block_keys * kChunks; i += 128) {
      ptx::st_shared_v4(Plan::VTile::chunk_address(slot, i / kChunks, i % kChunks), uint4{0, 0, 0, 0});
    }
    ptx::fence_proxy_async_shared();
    ptx::bar_sync(barrier_id::kGroup + group, 128);
  }

  /// Lets the slot of the tile before go, once the copy engine has read O out of it. With two slots this waits until
  /// the next tile's first product is under way. The lane that issued the boxes is the one elected here.
  __device__ __forceinline__ void release_held_query() {
    if (!holds_query) return;
    holds_query = false;
    if (ptx::elect_one()) {
      ptx::cp_async_bulk_wait_group_read();
      ptx::mbarrier_arrive(smem.q.empty(kC.query_slots == 1 ? 0 : q.slot ^ 1));
    }
    ptx::sync_warp();
  }

  /// Whether this warpgroup has any row in the tile.
  __device__ __forceinline__ bool has_rows(const Tile& tile) const {
    return group * 64 < existing_rows(params, tile);
  }

  __device__ __forceinline__ void do_work(const Work& work);
  // Main loop (below)
  __device__ __forceinline__ void attend(const Work& work);
  __device__ __forceinline__ void first_block(const Work& work, int block, bool cut);
  template <bool kMasked>
  __device__ __forceinline__ void turn(const Work& work, int block);
  __device__ __forceinline__ void last_output();
  __device__ __forceinline__ void stand_by(const BlockPlan& plan);
  // Epilogue (forward_finish.cuh)
  __device__ __forceinline__ void finish(const Tile& tile);
  __device__ __forceinline__ attention::RowFinish finish_row(const Tile& tile, int r) const;
  __device__ __forceinline__ void stage_output(uint32_t sO, float factor0, float factor1) const;
  __device__ __forceinline__ void store_boxes(const Tile& tile, uint32_t sO);
  __device__ __forceinline__ void store_rows(const Tile& tile, uint32_t sO);
  __device__ __forceinline__ void store_rows_without_keys(const Tile& tile);
  // Parts of a tile's keys (forward_parts.cuh)
  __device__ __forceinline__ void finish_part(const Tile& tile);
  __device__ __forceinline__ void finish_empty_part(const Tile& tile);
  __device__ __forceinline__ void combine_if_last(const Tile& tile);
  __device__ __forceinline__ void combine_row(const Tile& tile, int row);
};

/// One turn of the main loop. Masked and plain turns are separate code, in loops of their own.
template <ForwardConfig kC>
template <bool kMasked>
__device__ __forceinline__ void Attender<kC>::turn(const Work& work, int block) {
  float S[kScoreRegs];
  wait_keys();
  wait_turn();
  issue_scores(S);  // (1) of this block
  wait_values();
  issue_output();  // (5) of the block before
  pass_turn();
  ptx::wgmma_wait_group<1>();
  tile::pin(S);
  smem.k.release(k);
  k.advance();
  const bool moved = take_scores<kMasked>(S, work, block);  // (2), (3)
  softmax.template weigh<0>(S, params.scale_log2);
  if constexpr (kC.holds_output_wait()) hold_until_half_weighed();
  ptx::wgmma_wait_group<0>();
  tile::pin(O);
  smem.v.release(v);
  v.advance();
  if constexpr (!kC.rescales_if_moved()) rescale();  // (4)
  tile::pin(S);
  softmax.template weigh<1>(S, params.scale_log2);
  pack_weights(S);
  if constexpr (kC.rescales_if_moved()) {
    if (ptx::any(moved)) rescale();  // (4)
  }
}

/// The first block of a tile: there is no output product yet to overlap with.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::first_block(const Work& work, int block, bool cut) {
  float S[kScoreRegs];
  smem.q.wait_full(q);
  wait_keys();
  wait_turn();
  issue_scores(S);
  pass_turn();
  release_held_query();
  ptx::wgmma_wait_group<0>();
  tile::pin(S);
  smem.k.release(k);
  k.advance();
  if (cut) {
    take_scores<true>(S, work, block);
  } else {
    take_scores<false>(S, work, block);
  }
  softmax.template weigh<0>(S, params.scale_log2);
  softmax.template weigh<1>(S, params.scale_log2);
  pack_weights(S);
}

/// The output product of the last block.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::last_output() {
  wait_values();
  issue_output();
  ptx::wgmma_wait_group<0>();
  tile::pin(O);
  smem.v.release(v);
  v.advance();
}

/// The main loop: O, m and l of this warpgroup's rows over all key blocks, last first.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::attend(const Work& work) {
  // Broadcasts, so that the compiler knows these to be the same in all lanes: loops and slots are then uniform.
  const int begin = ptx::shfl(work.plan.begin, 0);
  const int first_plain = ptx::shfl(work.plan.first_plain, 0);
  const int end_plain = ptx::shfl(work.plan.end_plain, 0);
  const auto cut = [&](int block) { return block >= end_plain || block < first_plain; };
  int block = ptx::shfl(work.plan.end, 0) - 1;
  softmax = attention::RowSoftmax{};
#pragma unroll
  for (int i = 0; i < kC.value_dim / 2; ++i) O[i] = 0.0f;

  first_block(work, block, cut(block));
  const int keys_after = work.tile.keys - work.first_key(block, kC.block_keys);
  if (params.problem.key_layout != KeyLayout::kDense && keys_after < kC.block_keys) {
    wait_values();
    zero_values_from(keys_after);
  }
  --block;
  const int last_plain = attention::larger(begin, first_plain);
#pragma unroll 1
  while (block >= begin) {
#pragma unroll 1
    for (; block >= begin && cut(block); --block) turn<true>(work, block);
#pragma unroll 1
    for (; block >= last_plain; --block) turn<false>(work, block);
  }
  last_output();
}

/// A group none of whose rows exist lets every block go unread, in its turns, so that the others have the tensor cores.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::stand_by(const BlockPlan& plan) {
  release_held_query();
  smem.q.wait_full(q);
  for (int block = plan.begin; block < plan.end; ++block) {
    smem.k.wait_full(k);
    wait_turn();
    pass_turn();
    smem.k.release(k);
    k.advance();
    smem.v.wait_full(v);
    smem.v.release(v);
    v.advance();
  }
  smem.q.release(q);
  q.advance();
}

}  // namespace ks::fa3
