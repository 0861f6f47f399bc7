// The compute warpgroups of the MLA kernel: the main loop. What follows it is in mla_finish.cuh. See mla.cuh.
#pragma once

#include "kernels/attention/parts/chained_softmax.cuh"
#include "kernels/attention/parts/mask.cuh"
#include "kernels/fa3_hopper/mla/mla_smem.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/fence.cuh"
#include "kernels/tile/matmul.cuh"

namespace ks::fa3::mla {

template <MlaConfig kC>
struct Attender {
  static constexpr int kScoreRegs = kBlockKeys / 2;
  static constexpr int kOutputRegs = kValueDim / 4;  // of this group's half
  static constexpr int kSteps = kBlockKeys / 16;
  static constexpr int kHalfSlabs = Smem::kValueSlabs / 2;

  const MlaParams& params;
  Smem& smem;
  const int group;  ///< which half of the output columns
  const int lane;
  const int warp_row;
  const int worker_block;  ///< worker * cluster + rank
  RingPosition<1> q;
  RingPosition<2> k;  ///< of the next block
  RingPosition<2> parts;

  float O[kOutputRegs];
  attention::ChainedSoftmax<0> softmax;

  __device__ __forceinline__ Part next_part() {
    smem.parts.wait_full(parts);
    const Part part = smem.part[parts.slot];
    ptx::sync_warp();
    smem.parts.release(parts);
    parts.advance();
    return part;
  }

  __device__ __forceinline__ uint32_t half_of(int slot) const {
    return ptx::cvta_shared(smem.sK[slot]) + group * kHalfSlabs * Smem::KTile::kSlabBytes;
  }
  __device__ __forceinline__ uint32_t weights_of(int slot) const {
    return ptx::cvta_shared(smem.sK[slot]) + Smem::kValueSlabs * Smem::KTile::kSlabBytes;
  }

  /// This group's half of the block's values has landed.
  __device__ __forceinline__ void wait_values(const RingPosition<2>& at) const {
    for (int slab = 0; slab < kHalfSlabs; ++slab) {
      tile::wait(smem.full(at.slot, group * kHalfSlabs + slab), at.parity);
    }
  }

  /// This group's half of a slot may be overwritten, in all blocks of the cluster.
  __device__ __forceinline__ void release(int slot) const {
    if constexpr (kC.cluster > 1) {
      if (lane < kC.cluster) ptx::mbarrier_arrive_cluster(ptx::mapa_shared(smem.empty(slot, group), lane));
    } else {
      if (lane == 0) ptx::mbarrier_arrive(smem.empty(slot, group));
    }
  }

  /// (1) issued, for slabs kFrom .. kTo-1, each as it lands.
  template <int kFrom, int kTo>
  __device__ __forceinline__ void issue_scores(float (&S)[kScoreRegs], const RingPosition<2>& at) const {
    if constexpr (kFrom == kTo) return;
    const uint64_t rows = Smem::QTile::k_major(ptx::cvta_shared(smem.sQ));
    const uint64_t keys = Smem::KTile::k_major(ptx::cvta_shared(smem.sK[at.slot]));
    ptx::wgmma_fence();
#pragma unroll
    for (int slab = kFrom; slab < kTo; ++slab) {
      tile::wait(smem.full(at.slot, slab), at.parity);
#pragma unroll
      for (int step = 4 * slab; step < 4 * slab + 4; ++step) {
        tile::matmul_shared<kC.type>(S, rows + Smem::QTile::k_major_step(step), keys + Smem::KTile::k_major_step(step),
                                     step > 0);
      }
    }
    ptx::wgmma_commit_group();
  }

  /// (5) issued with the other group's weights.
  __device__ __forceinline__ void issue_output_of_other(int slot) {
    const uint64_t weights = Smem::PTile::k_major(weights_of(slot));
    const uint64_t values = Smem::KTile::mn_major(half_of(slot));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      tile::matmul_shared_columns<kC.type>(O, weights + Smem::PTile::k_major_step(step),
                                           values + Smem::KTile::mn_major_step(step), 1);
    }
    ptx::wgmma_commit_group();
  }

  /// (5) issued with this group's own weights.
  __device__ __forceinline__ void issue_output(const uint32_t (&P)[kSteps][4], int slot) {
    const uint64_t values = Smem::KTile::mn_major(half_of(slot));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      tile::matmul_registers<kC.type>(O, P[step], values + Smem::KTile::mn_major_step(step), 1);
    }
    ptx::wgmma_commit_group();
  }

  /// (4)
  __device__ __forceinline__ void rescale() {
#pragma unroll
    for (int i = 0; i < kOutputRegs; ++i) O[i] *= softmax.alpha[(i / 2) % 2];
  }

  /// Rounds the weights, and hands them to the other group with m and alpha.
  __device__ __forceinline__ void publish(const float (&S)[kScoreRegs], uint32_t (&P)[kSteps][4], int slot) {
    const uint32_t weights = weights_of(slot);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) P[step][i] = tile::pack<kC.type>(S[8 * step + 2 * i], S[8 * step + 2 * i + 1]);
      ptx::stmatrix_x4(
          Smem::PTile::chunk_address(weights, warp_row + lane % 8 + (lane / 8 % 2) * 8, 2 * step + lane / 16),
          P[step][0], P[step][1], P[step][2], P[step][3]);
    }
    if (lane % 4 == 0) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        smem.row_max[warp_row + lane / 4 + 8 * r] = softmax.m[r];
        smem.row_alpha[group][warp_row + lane / 4 + 8 * r] = softmax.alpha[r];
      }
    }
    ptx::fence_proxy_async_shared();
    ptx::bar_arrive(barrier_id::kReady + group, 256);
  }

  /// Waits for the other group's weights, and takes over m, alpha and what they do to l.
  __device__ __forceinline__ void take_over() {
    ptx::bar_sync(barrier_id::kReady + (group ^ 1), 256);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      softmax.m[r] = smem.row_max[warp_row + lane / 4 + 8 * r];
      softmax.alpha[r] = smem.row_alpha[group ^ 1][warp_row + lane / 4 + 8 * r];
      softmax.l[r] *= softmax.alpha[r];
    }
  }

  /// Keys past the member's last may be anything, and 0 x NaN is NaN: zero this group's half of their values.
  __device__ __forceinline__ void zero_values_from(int first_row, int slot) {
    constexpr int kChunks = kHalfSlabs * 8;
    for (int i = first_row * kChunks + ptx::thread_index() % 128; i < kBlockKeys * kChunks; i += 128) {
      ptx::st_shared_v4(Smem::KTile::chunk_address(half_of(slot), i / kChunks, i % kChunks), uint4{0, 0, 0, 0});
    }
    ptx::fence_proxy_async_shared();
    ptx::bar_sync(barrier_id::kGroup + group, 128);
  }

  __device__ __forceinline__ attention::RowMask row_mask(const Part& part) const {
    const int row = warp_row + lane / 4;
    return {{part.first_position + row / params.problem.ratio, part.first_position + (row + 8) / params.problem.ratio},
            part.rows,
            part.keys};
  }
  __device__ __forceinline__ int existing_rows(const Part& part) const {
    return attention::smaller(params.positions_per_tile, part.rows - part.first_position) * params.problem.ratio;
  }

  struct PartView {
    attention::RowMask mask;
    int first_plain_end;  ///< keys before this are visible to every row
    int keys;
  };

  __device__ __forceinline__ void own_block(float (&S)[kScoreRegs], const PartView& view, int first_key);
  __device__ __forceinline__ void turn(const PartView& view, int first_key);
  __device__ __forceinline__ void attend(const Part& part);
  __device__ __forceinline__ void finish(const Part& part, const float (&factor)[2], const float (&lse)[2]);
  __device__ __forceinline__ void finish_whole(const Part& part);
  __device__ __forceinline__ void finish_part(const Part& part);
  __device__ __forceinline__ void finish_empty_part(const Part& part);
  __device__ __forceinline__ bool is_last_part(const Part& part);
  __device__ __forceinline__ void combine(const Part& part);
  __device__ __forceinline__ void exchange_sums(float (&total)[2]);
};

/// (2) to (5) of an own block whose scores are there.
template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::own_block(float (&S)[kScoreRegs], const PartView& view, int first_key) {
  uint32_t P[kSteps][4];
  if (first_key + kBlockKeys > view.first_plain_end) {  // (2)
    view.mask.apply(S, first_key, lane % 4, params.problem.window_left, params.problem.window_right);
  }
  softmax.update(S, params.scale_log2);  // (3)
  publish(S, P, k.slot);
  if (softmax.moved()) rescale();  // (4)
  wait_values(k);
  if (first_key + kBlockKeys > view.keys) zero_values_from(view.keys - first_key, k.slot);
  issue_output(P, k.slot);  // (5)
  ptx::wgmma_wait_group<0>();
  tile::pin(O);
  release(k.slot);
  k.advance();
}

/// The other group's block before, and this group's own.
template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::turn(const PartView& view, int first_key) {
  float S[kScoreRegs];
  const RingPosition<2> before = k;
  k.advance();
  issue_scores<0, kC.early_slabs>(S, k);  // (1) of the own block, as far as it lands while the other group weighs
  wait_values(before);
  take_over();
  // With scores under way, a branch would make ptxas wait for them.
  if (kC.early_slabs > 0 || softmax.moved()) rescale();  // (4) before
  issue_output_of_other(before.slot);                    // (5) of the block before
  issue_scores<kC.early_slabs, Smem::KTile::kSlabs>(S, k);
  ptx::wgmma_wait_group<1>();
  tile::pin(O);
  release(before.slot);
  ptx::wgmma_wait_group<0>();
  tile::pin(S);
  own_block(S, view, first_key);
}

/// O, m and l of this group's half over all blocks of a part; blocks in even slots are group 0's.
template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::attend(const Part& part) {
  const attention::AttentionProblem& problem = params.problem;
  const int plain_end =
      attention::visible_keys(part.first_position, part.rows, part.keys, problem.window_left, problem.window_right).end;
  const PartView view = {row_mask(part), plain_end, part.keys};
  softmax = attention::ChainedSoftmax<0>{};
#pragma unroll
  for (int i = 0; i < kOutputRegs; ++i) O[i] = 0.0f;
  int done = 0;
  if (k.slot == group) {
    float S[kScoreRegs];
    issue_scores<0, Smem::KTile::kSlabs>(S, k);
    ptx::wgmma_wait_group<0>();
    tile::pin(S);
    own_block(S, view, part.first_block * kBlockKeys);
    done = 1;
  }
#pragma unroll 1
  for (; done + 2 <= part.blocks; done += 2) turn(view, (part.first_block + done + 1) * kBlockKeys);
  if (done < part.blocks) {  // the last block is the other group's
    wait_values(k);
    take_over();
    rescale();
    const int first_key = (part.first_block + done) * kBlockKeys;
    if (first_key + kBlockKeys > part.keys) zero_values_from(part.keys - first_key, k.slot);
    issue_output_of_other(k.slot);
    ptx::wgmma_wait_group<0>();
    tile::pin(O);
    release(k.slot);
    k.advance();
  }
}

}  // namespace ks::fa3::mla
