// Attention forward for e4m3 queries, keys and values on Hopper.
//
// 1. The algorithm is that of ../forward.cuh, but for three things.
//    - The tensor cores add 8-bit products up with fewer bits than binary32 has, so that a sum must not grow long in
//    them:
//      every block's output product starts from zero, and is added to O in binary32 by the same instruction that
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
//      turn (named)   the warpgroup before            this warpgroup        256 threads: exponentials are taken in
//      turns;
//                                                                           else all groups wait for the same unit, and
//                                                                           then for the tensor cores, together
//
// 3. Budget, registers a thread: Fp8Config::registers() and some 25 more, of 232. Shared memory: Q, the rings of K, of
// V
//    as it arrives and of V transposed, of 227 KB.
#pragma once

#include "kernels/attention/parts/mask.cuh"
#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/attention/parts/schedule.cuh"
#include "kernels/fa3_hopper/fp8/configs.h"
#include "kernels/fa3_hopper/fp8/params.h"
#include "kernels/fa3_hopper/fp8/turn_values.cuh"
#include "kernels/fa3_hopper/fp8/weigh.cuh"
#include "kernels/ptx/fence.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma_mma_e4m3.cuh"
#include "kernels/tile/matmul.cuh"
#include "kernels/tile/ring.cuh"
#include "kernels/tile/smem_tile.cuh"

namespace ks::fa3::fp8 {

using attention::BlockPlan;
using attention::KeyLayout;
using attention::Tile;
using tile::RingPosition;

// 5. Shared memory. Tiles count their columns in 16-bit units.
template <Fp8Config kC>
struct alignas(1024) Smem {
  using QTile = tile::SmemTile<kC.rows(), kC.slab_bytes() / 2>;
  using KTile = tile::SmemTile<kC.block_keys, kC.slab_bytes() / 2>;
  using VTile = tile::SmemTile<kC.dim, kC.value_row_bytes() / 2>;  ///< transposed: a row is a column of V

  unsigned char sQ[QTile::kBytes];
  unsigned char sK[kC.key_stages][KTile::kBytes];
  unsigned char sRaw[kC.raw_stages][KTile::kBytes];
  unsigned char sV[kC.value_stages][VTile::kBytes];
  tile::Ring<1> q;
  tile::Ring<kC.key_stages> k;
  tile::Ring<kC.raw_stages> raw;
  tile::Ring<kC.value_stages> v;
  tile::Ring<2> tiles;
  Tile tile[2];
};

namespace barrier_id {
inline constexpr int kTurn = 1;  // + warpgroup
}  // namespace barrier_id

template <Fp8Config kC>
__device__ __forceinline__ void load_tiles(const Fp8Params& params, Smem<kC>& smem);
template <Fp8Config kC>
__device__ __forceinline__ void turn_tiles(const Fp8Params& params, Smem<kC>& smem, int warp);
template <Fp8Config kC>
__device__ __forceinline__ void attend_query_rows(const Fp8Params& params, Smem<kC>& smem);

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

/// The key blocks of a tile; all roles compute the same.
template <Fp8Config kC>
__device__ __forceinline__ BlockPlan plan_of(const Fp8Params& params, const Tile& tile) {
  const int last = attention::smaller(tile.first_position + params.order.positions_per_tile, tile.rows) - 1;
  return attention::plan_blocks(tile.first_position, last, tile.rows, tile.keys, params.problem.window_left,
                                params.problem.window_right, kC.block_keys, params.origin_step);
}

/// The tile that the load warp published last.
template <Fp8Config kC>
__device__ __forceinline__ Tile next_tile(Smem<kC>& smem, RingPosition<2>& tiles) {
  smem.tiles.wait_full(tiles);
  const Tile tile = smem.tile[tiles.slot];
  ptx::sync_warp();
  smem.tiles.release(tiles);
  tiles.advance();
  return tile;
}

// 7. The load warp.

/// Where keys that one box brings lie.
struct BoxPlace {
  int row;
  int page;  ///< or member
};

template <Fp8Config kC>
struct Loader {
  using Plan = Smem<kC>;
  const Fp8Params& params;
  Plan& smem;
  RingPosition<1> q;
  RingPosition<kC.key_stages> k;
  RingPosition<kC.raw_stages> raw;
  RingPosition<2> tiles;

  __device__ __forceinline__ void publish(const Tile& tile) {
    smem.tiles.wait_empty(tiles);
    if (ptx::lane_index() == 0) {
      smem.tile[tiles.slot] = tile;
      ptx::mbarrier_arrive(smem.tiles.full(tiles.slot));
    }
    ptx::sync_warp();
    tiles.advance();
  }

  __device__ __forceinline__ void load_query(const Tile& tile) {
    smem.q.wait_empty(q);
    if (ptx::elect_one()) {
      const uint32_t barrier = smem.q.full(0);
      ptx::mbarrier_arrive_expect_tx(barrier, params.query_bytes);
      for (int slab = 0; slab < Plan::QTile::kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(ptx::cvta_shared(smem.sQ) + slab * Plan::QTile::kSlabBytes, &params.query_map,
                                          slab * 128, tile.group * params.problem.ratio,
                                          tile.row_base + tile.first_position,
                                          params.problem.rows_packed ? 0 : tile.member, barrier, ptx::kEvictFirst);
      }
    }
    ptx::sync_warp();
    q.advance();
  }

  /// The place of this lane's box of a block; any place for lanes without one.
  __device__ __forceinline__ BoxPlace place_in(const Tile& tile, int first_key) const {
    const attention::AttentionProblem& problem = params.problem;
    const int key = first_key + ptx::lane_index() * params.granule;
    if (problem.key_layout != KeyLayout::kPaged) {
      return {tile.key_base + key, problem.key_layout == KeyLayout::kPacked ? 0 : tile.member};
    }
    if (first_key < 0 || key >= tile.keys) return {0, 0};
    const int entry = key / problem.page_size;
    const int32_t* table = problem.page_table + int64_t{tile.member} * problem.page_table_stride;
    return {key - entry * problem.page_size, ptx::ld_global_nc(table + entry)};
  }

  /// Brings a block of keys or values into a slot, a box a run of keys. Runs past the member's last key stay as they
  /// are.
  __device__ __forceinline__ void load_block(const CUtensorMap* map, const Tile& tile, int first_key, BoxPlace own,
                                             uint32_t slot, uint32_t barrier) const {
    int boxes = 1;
    if (params.problem.key_layout == KeyLayout::kPaged) {
      boxes = attention::smaller(kC.block_keys, tile.keys - first_key + params.granule - 1) / params.granule;
    }
    const int box_bytes = params.granule * 128;
    if (ptx::elect_one()) ptx::mbarrier_arrive_expect_tx(barrier, boxes * box_bytes * Plan::KTile::kSlabs);
    for (int i = 0; i < boxes; ++i) {
      const int row = ptx::shfl(own.row, i);
      const int page = ptx::shfl(own.page, i);
      if (!ptx::elect_one()) continue;
#pragma unroll
      for (int slab = 0; slab < Plan::KTile::kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(slot + slab * Plan::KTile::kSlabBytes + i * box_bytes, map, slab * 128, row,
                                          tile.kv_head, page, barrier, params.key_policy);
      }
    }
    ptx::sync_warp();
  }

  /// All blocks of a tile, last first; pages are looked up a block ahead.
  __device__ __forceinline__ void load_tile(const Tile& tile, const BlockPlan& plan) {
    int first_key = plan.origin + (plan.end - 1) * kC.block_keys;
    BoxPlace current = place_in(tile, first_key);
#pragma unroll 1
    for (int block = plan.end - 1; block >= plan.begin; --block) {
      const BoxPlace next = place_in(tile, first_key - kC.block_keys);
      smem.k.wait_empty(k);
      load_block(&params.key_map, tile, first_key, current, ptx::cvta_shared(smem.sK[k.slot]), smem.k.full(k.slot));
      k.advance();
      if (block == plan.end - 1) load_query(tile);
      smem.raw.wait_empty(raw);
      load_block(&params.value_map, tile, first_key, current, ptx::cvta_shared(smem.sRaw[raw.slot]),
                 smem.raw.full(raw.slot));
      raw.advance();
      current = next;
      first_key -= kC.block_keys;
    }
  }
};

template <Fp8Config kC>
__device__ __forceinline__ void load_tiles(const Fp8Params& params, Smem<kC>& smem) {
  attention::TileWalk walk(params.problem, params.order);
  Loader<kC> loader{params, smem};
  int index = ptx::block_index();
#pragma unroll 1
  while (true) {
    const Tile tile = walk.at(index);
    loader.publish(tile);
    if (tile.member < 0) break;
    // The next tile is asked for early: the answer travels while this one is loaded.
    if (ptx::lane_index() == 0) index = attention::take_tile(params.counters);
    loader.load_tile(tile, plan_of<kC>(params, tile));
    index = ptx::shfl(index, 0);
  }
  if (ptx::lane_index() == 0) attention::finish_tiles(params.counters);
}

// 8. The warps that transpose V.
template <Fp8Config kC>
__device__ __forceinline__ void turn_tiles(const Fp8Params& params, Smem<kC>& smem, int warp) {
  using Plan = Smem<kC>;
  RingPosition<kC.raw_stages> raw;
  RingPosition<kC.value_stages> v;
  RingPosition<2> tiles;
#pragma unroll 1
  while (true) {
    const Tile tile = next_tile(smem, tiles);
    if (tile.member < 0) break;
    const BlockPlan plan = plan_of<kC>(params, tile);
#pragma unroll 1
    for (int block = plan.end - 1; block >= plan.begin; --block) {
      smem.raw.wait_full(raw);
      smem.v.wait_empty(v);
      turn_values<typename Plan::KTile, typename Plan::VTile, kC.block_keys, kC.dim>(
          ptx::cvta_shared(smem.sRaw[raw.slot]), ptx::cvta_shared(smem.sV[v.slot]),
          tile.keys - plan.origin - block * kC.block_keys, warp, kTurners, ptx::lane_index());
      ptx::fence_proxy_async_shared();  // the tensor cores read what was written, the copy engine writes what was read
      ptx::sync_warp();
      smem.raw.release(raw);
      if (ptx::lane_index() == 0) ptx::mbarrier_arrive(smem.v.full(v.slot));
      raw.advance();
      v.advance();
    }
  }
}

// 9. The compute warpgroups.

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

/// The first of the four neighbouring columns of O that a lane holds in registers 8 g .. 8 g + 7 (g sixteens of
/// columns): for either row, register 8 g + 2 r is the first, + 4 the second, + 1 the third, + 5 the fourth
/// (turn_values.cuh).
__device__ __forceinline__ int output_column(int sixteen, int lane) {
  return 16 * sixteen + 4 * (lane % 4);
}

/// Divides by l and writes O and LSE.
template <Fp8Config kC>
__device__ __forceinline__ void Attender<kC>::finish(const Tile& tile) {
  const attention::AttentionProblem& problem = params.problem;
  const float descale = descale_of(tile, params.value_descale);
  constexpr float kUnscaled = 1.0f / (1 << kWeightBits);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const RowPlace place = place_of(tile, warp_row + lane / 4 + 8 * r);
    const float total = attention::quad_sum(softmax.l[r]) * kUnscaled;
    attention::RowFinish done;
    if (problem.sinks != nullptr) {
      const float sink = place.exists ? tile::load_float<tile::Element::kBf16>(problem.sinks, place.head) : 0.0f;
      done = attention::finish_row_with_sink(softmax.m[r], total, scale_log2, sink);
    } else {
      done = attention::finish_row(softmax.m[r], total, scale_log2);
    }
    if (!place.exists) continue;
    if (lane % 4 == 0) *lse_of(tile, place) = done.lse;
    const float factor = done.factor * descale * kUnscaled;
    char* row = output_of(tile, place);
#pragma unroll
    for (int g = 0; g < kC.dim / 16; ++g) {
      const int column = output_column(g, lane);
      if (column >= problem.value_dim) continue;
      const int at = 8 * g + 2 * r;
      ptx::st_global_v2(row + 2 * column, ptx::cvt_rn_bf16x2(O[at] * factor, O[at + 4] * factor),
                        ptx::cvt_rn_bf16x2(O[at + 1] * factor, O[at + 5] * factor));
    }
  }
}

/// A tile none of whose rows sees a key: O = 0, LSE = -inf or the sink.
template <Fp8Config kC>
__device__ __forceinline__ void Attender<kC>::store_rows_without_keys(const Tile& tile) {
  const attention::AttentionProblem& problem = params.problem;
  for (int row = warp_row; row < warp_row + 16; ++row) {
    const RowPlace place = place_of(tile, row);
    if (!place.exists) continue;
    for (int chunk = lane; chunk * 8 < problem.value_dim; chunk += 32) {
      ptx::st_global_v4(output_of(tile, place) + 16 * chunk, uint4{0, 0, 0, 0});
    }
    if (lane == 0) {
      *lse_of(tile, place) =
          problem.sinks != nullptr ? tile::load_float<tile::Element::kBf16>(problem.sinks, place.head) : -INFINITY;
    }
  }
}

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

}  // namespace ks::fa3::fp8
