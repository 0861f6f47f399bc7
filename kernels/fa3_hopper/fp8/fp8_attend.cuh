// The compute warpgroups of the e4m3 kernel: the main loop. What follows it is in fp8_finish.cuh. See fp8.cuh.
#pragma once

#include "kernels/attention/parts/mask.cuh"
#include "kernels/fa3_hopper/fp8/fp8_smem.cuh"
#include "kernels/fa3_hopper/fp8/weigh.cuh"
#include "kernels/ptx/fence.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/wgmma_mma_e4m3.cuh"
#include "kernels/tile/matmul.cuh"

namespace ks::fa3::fp8 {

template <Fp8Config kC>
struct Attender {
  using Plan = Smem<kC>;
  static constexpr int kScoreRegs = kC.block_keys / 2;
  static constexpr int kSteps = kC.block_keys / 32;  // of the output product
  static constexpr int kQuerySteps = kC.dim / 32;
  static constexpr int kFoldRegs = kC.fold_columns() / 2;
  static constexpr int kFolds = kC.dim / kC.fold_columns();

  const Fp8Params& params;
  Plan& smem;
  const int group;  ///< which compute warpgroup
  const int lane;
  const int warp_row;  ///< first row of this warp in the tile
  RingPosition<1> q;
  RingPosition<kC.key_stages> k;
  RingPosition<kC.value_stages> v;
  RingPosition<2> tiles;

  float O[kC.dim / 2];
  uint32_t P[kSteps][4];
  uint32_t Q[kC.query_in_registers ? kQuerySteps : 1][4];
  WeightSoftmax softmax;
  float scale_log2;  ///< of this tile: with the descales

  __device__ __forceinline__ void wait_turn() const { ptx::bar_sync(barrier_id::kTurn + group, 256); }
  __device__ __forceinline__ void pass_turn() const {
    ptx::bar_arrive(barrier_id::kTurn + (group + 1 == kC.warpgroups ? 0 : group + 1), 256);
  }

  /// A warp's fragments of its own rows; their memory is free for the next tile then.
  __device__ __forceinline__ void read_query() {
    if constexpr (kC.query_in_registers) {
#pragma unroll
      for (int step = 0; step < kQuerySteps; ++step) {
        ptx::ldmatrix_x4(Q[step],
                         Plan::QTile::chunk_address(ptx::cvta_shared(smem.sQ), warp_row + lane % 8 + (lane / 8 % 2) * 8,
                                                    2 * step + lane / 16));
      }
      ptx::fence_proxy_async_shared();
      ptx::sync_warp();
      smem.q.release(q);
    }
  }
  __device__ __forceinline__ void finish_query() {
    if constexpr (!kC.query_in_registers) smem.q.release(q);
    q.advance();
  }

  /// (1) issued: S = Q K^T.
  __device__ __forceinline__ void issue_scores(float (&S)[kScoreRegs]) const {
    const uint64_t keys = Plan::KTile::k_major(ptx::cvta_shared(smem.sK[k.slot]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kQuerySteps; ++step) {
      if constexpr (kC.query_in_registers) {
        ptx::wgmma_m64k32_e4m3_rs(S, Q[step], keys + Plan::KTile::k_major_step(step), step > 0);
      } else {
        const uint64_t rows = Plan::QTile::k_major(ptx::cvta_shared(smem.sQ) + group * 64 * 128);
        ptx::wgmma_m64k32_e4m3_ss(S, rows + Plan::QTile::k_major_step(step), keys + Plan::KTile::k_major_step(step),
                                  step > 0);
      }
    }
    ptx::wgmma_commit_group();
  }

  /// (5) issued for one part of the columns: T = P V.
  __device__ __forceinline__ void issue_output(float (&T)[kFoldRegs], int fold) const {
    const uint64_t values = Plan::VTile::k_major(ptx::cvta_shared(smem.sV[v.slot]) + fold * kC.fold_columns() * 128);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      ptx::wgmma_m64k32_e4m3_rs(T, P[step], values + Plan::VTile::k_major_step(step), step > 0);
    }
    ptx::wgmma_commit_group();
  }

  /// (4) and the sum of (5): O = alpha O + T.
  __device__ __forceinline__ void fold_in(const float (&T)[kFoldRegs], int fold, const float (&alpha)[2]) {
#pragma unroll
    for (int i = 0; i < kFoldRegs; ++i) {
      O[fold * kFoldRegs + i] = fmaf(O[fold * kFoldRegs + i], alpha[(i / 2) % 2], T[i]);
    }
  }

  /// (2) and (3)
  template <bool kMasked>
  __device__ __forceinline__ void weigh(float (&S)[kScoreRegs], const attention::RowMask& mask, int first_key) {
    if constexpr (kMasked) {
      mask.apply(S, first_key, lane % 4, params.problem.window_left, params.problem.window_right);
    }
    softmax.advance(S, scale_log2);
    wait_turn();
    hold_until_turn();
    softmax.exponentiate(S, scale_log2);
    hold_until_weighed();
    pass_turn();
  }

  /// ptxas moves what waits above the exponentials, which then hide nothing. A branch that hangs on the row sums, and
  /// is never taken, keeps it below them.
  __device__ __forceinline__ void hold_until_weighed() const {
    if (softmax.l[0] + softmax.l[1] < 0.0f) ptx::trap();
  }

  /// Likewise, keeps the exponentials below the wait for this group's turn: alpha is never negative.
  __device__ __forceinline__ void hold_until_turn() const {
    if (softmax.alpha[0] < 0.0f) ptx::trap();
  }

  __device__ __forceinline__ int position_of(int row) const {
    return static_cast<int>(static_cast<uint32_t>(row) * params.ratio_reciprocal >> 16);
  }
  __device__ __forceinline__ int existing_rows(const Tile& tile) const {
    return attention::smaller(params.order.positions_per_tile, tile.rows - tile.first_position) * params.problem.ratio;
  }

  /// Where a row of the tile belongs.
  struct RowPlace {
    bool exists;
    int position;
    int head;
  };
  __device__ __forceinline__ RowPlace place_of(const Tile& tile, int row) const {
    const int ratio = params.problem.ratio;
    const int step = position_of(row);
    const int position = tile.first_position + step;
    return {row < params.order.positions_per_tile * ratio && position < tile.rows, position,
            tile.group * ratio + row - step * ratio};
  }
  __device__ __forceinline__ char* output_of(const Tile& tile, const RowPlace& place) const {
    const attention::AttentionProblem& problem = params.problem;
    return static_cast<char*>(problem.output) +
           2 * ((problem.rows_packed ? 0 : tile.member * problem.output_batch_stride) +
                int64_t{tile.row_base + place.position} * problem.output_row_stride +
                place.head * problem.output_head_stride);
  }
  __device__ __forceinline__ float* lse_of(const Tile& tile, const RowPlace& place) const {
    const attention::AttentionProblem& problem = params.problem;
    return problem.lse + (problem.rows_packed ? 0 : tile.member * problem.lse_batch_stride) +
           int64_t{tile.row_base + place.position} * problem.lse_row_stride + place.head * problem.lse_head_stride;
  }

  __device__ __forceinline__ attention::RowMask row_mask(const Tile& tile) const {
    const int first = tile.first_position;
    return {
        {first + position_of(warp_row + lane / 4), first + position_of(warp_row + lane / 4 + 8)}, tile.rows, tile.keys};
  }
  __device__ __forceinline__ float descale_of(const Tile& tile, const float* descales) const {
    if (descales == nullptr) return 1.0f;
    return descales[tile.member * params.descale_batch_stride + tile.kv_head * params.descale_head_stride];
  }

  __device__ __forceinline__ void attend(const Tile& tile, const BlockPlan& plan);
  __device__ __forceinline__ void stand_by(const BlockPlan& plan);
  template <bool kMasked>
  __device__ __forceinline__ void turn(const attention::RowMask& mask, int first_key);
  template <bool kMasked>
  __device__ __forceinline__ void plain_turn(const attention::RowMask& mask, int first_key);
  __device__ __forceinline__ void attend_overlapped(const attention::RowMask& mask, const BlockPlan& plan);
  __device__ __forceinline__ void attend_plainly(const attention::RowMask& mask, const BlockPlan& plan);
  __device__ __forceinline__ void finish(const Tile& tile);
  __device__ __forceinline__ void store_rows_without_keys(const Tile& tile);
};

/// One turn where this block's scores run together with the last block's output. Masked and plain turns are separate
/// code, see ../forward.cuh.
template <Fp8Config kC>
template <bool kMasked>
__device__ __forceinline__ void Attender<kC>::turn(const attention::RowMask& mask, int first_key) {
  float S[kScoreRegs];
  float T[kFoldRegs];
  smem.k.wait_full(k);
  issue_scores(S);  // (1) of this block
  smem.v.wait_full(v);
  issue_output(T, 0);  // (5) of the block before
  ptx::wgmma_wait_group<1>();
  tile::pin(S);
  smem.k.release(k);
  k.advance();
  const float alpha[2] = {softmax.alpha[0], softmax.alpha[1]};
  weigh<kMasked>(S, mask, first_key);  // (2), (3)
  ptx::wgmma_wait_group<0>();
  tile::pin(T);
  smem.v.release(v);
  v.advance();
  fold_in(T, 0, alpha);  // (4) of the block before
  pack_weights(P, S);
}

template <Fp8Config kC>
__device__ __forceinline__ void Attender<kC>::attend_overlapped(const attention::RowMask& mask, const BlockPlan& plan) {
  int block = plan.end - 1;
  int first_key = plan.origin + block * kC.block_keys;
  {
    float S[kScoreRegs];
    smem.k.wait_full(k);
    issue_scores(S);
    ptx::wgmma_wait_group<0>();
    tile::pin(S);
    smem.k.release(k);
    k.advance();
    if (block >= plan.end_plain || block < plan.first_plain) {
      weigh<true>(S, mask, first_key);
    } else {
      weigh<false>(S, mask, first_key);
    }
    pack_weights(P, S);
  }
  while (--block >= plan.begin) {
    first_key -= kC.block_keys;
    if (block >= plan.end_plain || block < plan.first_plain) {
      turn<true>(mask, first_key);
    } else {
      turn<false>(mask, first_key);
    }
  }
  float T[kFoldRegs];
  smem.v.wait_full(v);
  issue_output(T, 0);
  ptx::wgmma_wait_group<0>();
  tile::pin(T);
  smem.v.release(v);
  v.advance();
  fold_in(T, 0, softmax.alpha);
}

/// One turn where O leaves no room for that: the other group's products run while this one weighs. The output comes in
/// parts, one of which is folded in while the next is under way.
template <Fp8Config kC>
template <bool kMasked>
__device__ __forceinline__ void Attender<kC>::plain_turn(const attention::RowMask& mask, int first_key) {
  {
    float S[kScoreRegs];
    smem.k.wait_full(k);
    issue_scores(S);
    ptx::wgmma_wait_group<0>();
    tile::pin(S);
    smem.k.release(k);
    k.advance();
    weigh<kMasked>(S, mask, first_key);
    pack_weights(P, S);
  }
  float T[2][kFoldRegs];
  smem.v.wait_full(v);
  issue_output(T[0], 0);
#pragma unroll
  for (int fold = 0; fold < kFolds; ++fold) {
    if (fold + 1 < kFolds) {
      issue_output(T[(fold + 1) % 2], fold + 1);
      ptx::wgmma_wait_group<1>();
    } else {
      ptx::wgmma_wait_group<0>();
    }
    tile::pin(T[fold % 2]);
    fold_in(T[fold % 2], fold, softmax.alpha);
  }
  smem.v.release(v);
  v.advance();
}

template <Fp8Config kC>
__device__ __forceinline__ void Attender<kC>::attend_plainly(const attention::RowMask& mask, const BlockPlan& plan) {
  int first_key = plan.origin + (plan.end - 1) * kC.block_keys;
  for (int block = plan.end - 1; block >= plan.begin; --block) {
    if (block >= plan.end_plain || block < plan.first_plain) {
      plain_turn<true>(mask, first_key);
    } else {
      plain_turn<false>(mask, first_key);
    }
    first_key -= kC.block_keys;
  }
}

/// O, m and l of this warpgroup's rows over all key blocks.
template <Fp8Config kC>
__device__ __forceinline__ void Attender<kC>::attend(const Tile& tile, const BlockPlan& plan) {
  const attention::RowMask mask = row_mask(tile);
  scale_log2 = params.problem.scale * attention::kLog2E * descale_of(tile, params.query_descale) *
               descale_of(tile, params.key_descale);
  softmax = WeightSoftmax{};
#pragma unroll
  for (int i = 0; i < kC.dim / 2; ++i) O[i] = 0.0f;
  smem.q.wait_full(q);
  read_query();
  if constexpr (kC.overlaps) {
    attend_overlapped(mask, plan);
  } else {
    attend_plainly(mask, plan);
  }
  finish_query();
}

/// A group none of whose rows exist lets every block go unread, in its turns.
template <Fp8Config kC>
__device__ __forceinline__ void Attender<kC>::stand_by(const BlockPlan& plan) {
  smem.q.wait_full(q);
  smem.q.release(q);
  q.advance();
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
}

}  // namespace ks::fa3::fp8
