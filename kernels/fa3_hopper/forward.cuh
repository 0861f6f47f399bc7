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
//      tiles.full     load warp (tile written)        compute warps    1
//      tiles.empty    compute warps (tile read)       load warp        4 a warpgroup
//      q/k/v.full     load warp + bytes               compute warps    1 + bytes
//      q/k/v.empty    compute warps (done with it)    load warp        4 a warpgroup
//      turn (named)   the warpgroup before            this warpgroup   256 threads: products are issued in turns, so
//                                                                      that one group's softmax meets another's product
//      group (named)  warpgroup                       warpgroup        128 threads
//
// 3. Budget, registers a thread: O value_dim/2 + S block_keys/2 + P block_keys/4 and some 35 more, of 232 (two compute
//    warpgroups) or 160 (three). Shared memory: Q, K ring, V ring and 2 KB of barriers, of 227 KB. O is staged in Q.
#pragma once

#include "kernels/attention/parts/mask.cuh"
#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/attention/parts/schedule.cuh"
#include "kernels/fa3_hopper/configs.h"
#include "kernels/fa3_hopper/forward_params.h"
#include "kernels/ptx/fence.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/tile/matmul.cuh"
#include "kernels/tile/ring.cuh"
#include "kernels/tile/smem_tile.cuh"

namespace ks::fa3 {

using attention::BlockPlan;
using attention::KeyLayout;
using attention::Tile;
using tile::RingPosition;

// 5. Shared memory.
template <ForwardConfig kC>
struct alignas(1024) Smem {
  using QTile = tile::SmemTile<kC.rows(), kC.key_dim>;
  using KTile = tile::SmemTile<kC.block_keys, kC.key_dim>;
  using VTile = tile::SmemTile<kC.block_keys, kC.value_dim>;
  using OTile = tile::SmemTile<kC.rows(), kC.value_dim>;  // lies over QTile once its scores are done

  unsigned char sQ[kC.query_slots][QTile::kBytes];
  unsigned char sK[kC.stages][KTile::kBytes];
  unsigned char sV[kC.stages][VTile::kBytes];
  tile::Ring<kC.query_slots> q;
  tile::Ring<kC.stages> k;
  tile::Ring<kC.stages> v;
  tile::Ring<2> tiles;
  Tile tile[2];
};

namespace barrier_id {
inline constexpr int kTurn = 1;   // + warpgroup
inline constexpr int kGroup = 4;  // + warpgroup
}  // namespace barrier_id

template <ForwardConfig kC>
__device__ __forceinline__ void load_tiles(const ForwardParams& params, Smem<kC>& smem);
template <ForwardConfig kC>
__device__ __forceinline__ void attend_query_rows(const ForwardParams& params, Smem<kC>& smem);

// 6. The entry.
// (Not a template over ForwardConfig itself: nvcc 13.0 emits a host stub for that which does not compile.)
template <ForwardShape kShape, Element kType, bool kSoftcap>
__global__ void __launch_bounds__(config_of(kShape, kType, kSoftcap).threads(),
                                  config_of(kShape, kType, kSoftcap).blocks_per_sm)
    attention_forward_sm90(const __grid_constant__ ForwardParams params) {
  constexpr ForwardConfig kC = config_of(kShape, kType, kSoftcap);
  extern __shared__ unsigned char memory[];
  static_assert(kC.is_valid() && sizeof(Smem<kC>) <= 232448 / kC.blocks_per_sm);
  Smem<kC>& smem = *reinterpret_cast<Smem<kC>*>(memory);
  if (ptx::thread_index() == 0) {
    smem.q.init(1, 4 * kC.warpgroups);
    smem.k.init(1, 4 * kC.warpgroups);
    smem.v.init(1, 4 * kC.warpgroups);
    smem.tiles.init(1, 4 * kC.warpgroups);
    ptx::fence_mbarrier_init();
  }
  ptx::sync_block();
  const int warp = ptx::warp_index();
  if (warp < 4 * kC.warpgroups) {
    if constexpr (kC.moves_registers()) ptx::setmaxnreg_inc<kC.compute_registers()>();
    attend_query_rows<kC>(params, smem);
  } else {
    if constexpr (kC.moves_registers()) ptx::setmaxnreg_dec<kC.load_registers()>();
    if (warp == 4 * kC.warpgroups) load_tiles<kC>(params, smem);
  }
}

/// The key blocks of a tile; both roles compute the same.
template <ForwardConfig kC>
__device__ __forceinline__ BlockPlan plan_of(const ForwardParams& params, const Tile& tile) {
  const int last = attention::smaller(tile.first_position + params.order.positions_per_tile, tile.rows) - 1;
  return attention::plan_blocks(tile.first_position, last, tile.rows, tile.keys, params.problem.window_left,
                                params.problem.window_right, kC.block_keys, params.origin_step);
}

// 7. The load warp.

/// Brings `block_keys` keys from first_key on into a slot, one box or a box a page chunk. Chunks past the member's last
/// key stay as they are: their scores are masked, their values zeroed before use.
template <ForwardConfig kC, int kSlabs, int kSlabBytes>
__device__ __forceinline__ void load_block(const ForwardParams& params, const CUtensorMap* map, const Tile& tile,
                                           int first_key, uint32_t slot, uint32_t barrier) {
  const attention::AttentionProblem& problem = params.problem;
  const int lane = ptx::lane_index();
  if (problem.key_layout != KeyLayout::kPaged) {
    if (lane != 0) return;
    ptx::mbarrier_arrive_expect_tx(barrier, kSlabs * kSlabBytes);
    const int member = problem.key_layout == KeyLayout::kPacked ? 0 : tile.member;
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      ptx::cp_async_bulk_tensor_4d_load(slot + slab * kSlabBytes, map, slab * 64, tile.key_base + first_key, tile.kv_head,
                                        member, barrier, ptx::kEvictLast);
    }
    return;
  }
  const int wanted = (tile.keys - first_key + params.granule - 1) / params.granule;
  const int chunks = attention::smaller(kC.block_keys / params.granule, wanted);
  if (lane == 0) ptx::mbarrier_arrive_expect_tx(barrier, chunks * params.granule * 128 * kSlabs);
  ptx::sync_warp();
  const int32_t* table = problem.page_table + int64_t{tile.member} * problem.page_table_stride;
  for (int chunk = lane; chunk < chunks; chunk += 32) {
    const int key = first_key + chunk * params.granule;
    const int entry = key / problem.page_size;
    const int page = ptx::ld_global_nc(table + entry);
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      ptx::cp_async_bulk_tensor_4d_load(slot + slab * kSlabBytes + chunk * params.granule * 128, map, slab * 64,
                                        key - entry * problem.page_size, tile.kv_head, page, barrier, ptx::kEvictLast);
    }
  }
}

template <ForwardConfig kC>
struct Loader {
  using Plan = Smem<kC>;
  const ForwardParams& params;
  Plan& smem;
  RingPosition<kC.query_slots> q;
  RingPosition<kC.stages> k;
  RingPosition<kC.stages> v;
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
    if (ptx::lane_index() == 0) {
      const uint32_t barrier = smem.q.full(q.slot);
      const uint32_t slot = ptx::cvta_shared(smem.sQ[q.slot]);
      ptx::mbarrier_arrive_expect_tx(barrier, params.query_bytes);
      const int member = params.problem.rows_packed ? 0 : tile.member;
      for (int slab = 0; slab < Plan::QTile::kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(slot + slab * Plan::QTile::kSlabBytes, &params.query_map, slab * 64,
                                          tile.group * params.problem.ratio, tile.row_base + tile.first_position, member,
                                          barrier, ptx::kEvictFirst);
      }
    }
    ptx::sync_warp();
    q.advance();
  }

  __device__ __forceinline__ void load_keys(const Tile& tile, int first_key) {
    smem.k.wait_empty(k);
    load_block<kC, Plan::KTile::kSlabs, Plan::KTile::kSlabBytes>(
        params, &params.key_map, tile, first_key, ptx::cvta_shared(smem.sK[k.slot]), smem.k.full(k.slot));
    ptx::sync_warp();
    k.advance();
  }

  __device__ __forceinline__ void load_values(const Tile& tile, int first_key) {
    smem.v.wait_empty(v);
    load_block<kC, Plan::VTile::kSlabs, Plan::VTile::kSlabBytes>(
        params, &params.value_map, tile, first_key, ptx::cvta_shared(smem.sV[v.slot]), smem.v.full(v.slot));
    ptx::sync_warp();
    v.advance();
  }
};

template <ForwardConfig kC>
__device__ __forceinline__ void load_tiles(const ForwardParams& params, Smem<kC>& smem) {
  attention::TileWalk walk(params.problem, params.order);
  Loader<kC> loader{params, smem};
  for (int index = ptx::block_index();;) {
    const Tile tile = walk.at(index);
    loader.publish(tile);
    if (tile.member < 0) break;
    int next = 0;  // asked for early: the answer travels while this tile is loaded
    if (ptx::lane_index() == 0) next = attention::take_tile(params.counters);
    const BlockPlan plan = plan_of<kC>(params, tile);
    for (int block = plan.count - 1; block >= 0; --block) {
      const int first_key = plan.origin + block * kC.block_keys;
      loader.load_keys(tile, first_key);
      if (block == plan.count - 1) {
        loader.load_query(tile);
      } else {
        loader.load_values(tile, first_key + kC.block_keys);  // one block behind the keys, as they are used
      }
    }
    if (plan.count > 0) loader.load_values(tile, plan.origin);
    index = ptx::shfl(next, 0);
  }
  if (ptx::lane_index() == 0) attention::finish_tiles(params.counters);
}

// 8. The compute warpgroups.

template <ForwardConfig kC>
struct Attender {
  using Plan = Smem<kC>;
  static constexpr int kScoreRegs = kC.block_keys / 2;
  static constexpr int kSteps = kC.block_keys / 16;

  const ForwardParams& params;
  Plan& smem;
  const int group;  ///< which compute warpgroup
  const int lane;
  const int warp_row;  ///< first row of this warp in the tile
  RingPosition<kC.query_slots> q;
  RingPosition<kC.stages> k;
  RingPosition<kC.stages> v;
  RingPosition<2> tiles;

  float O[kC.value_dim / 2];
  uint32_t P[kSteps][4];
  attention::RowSoftmax softmax;

  __device__ __forceinline__ Tile next_tile() {
    smem.tiles.wait_full(tiles);
    const Tile tile = smem.tile[tiles.slot];
    ptx::sync_warp();
    smem.tiles.release(tiles);
    tiles.advance();
    return tile;
  }

  __device__ __forceinline__ void wait_turn() const {
    if constexpr (kC.takes_turns()) ptx::bar_sync(barrier_id::kTurn + group, 256);
  }
  __device__ __forceinline__ void pass_turn() const {
    if constexpr (kC.takes_turns()) {
      ptx::bar_arrive(barrier_id::kTurn + (group + 1 == kC.warpgroups ? 0 : group + 1), 256);
    }
  }

  /// (1) issued: S = Q K^T.
  __device__ __forceinline__ void issue_scores(float (&S)[kScoreRegs]) {
    const uint64_t rows = Plan::QTile::k_major(ptx::cvta_shared(smem.sQ[q.slot]) + group * 64 * 128);
    const uint64_t keys = Plan::KTile::k_major(ptx::cvta_shared(smem.sK[k.slot]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kC.key_dim / 16; ++step) {
      tile::matmul_shared<kC.type>(S, rows + Plan::QTile::k_major_step(step), keys + Plan::KTile::k_major_step(step),
                                   step > 0);
    }
    ptx::wgmma_commit_group();
  }

  /// (5) issued: O += P V.
  __device__ __forceinline__ void issue_output() {
    const uint64_t values = Plan::VTile::mn_major(ptx::cvta_shared(smem.sV[v.slot]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      tile::matmul_registers<kC.type>(O, P[step], values + Plan::VTile::mn_major_step(step), 1);
    }
    ptx::wgmma_commit_group();
  }

  /// (2) and (3) on a block whose first key is given.
  __device__ __forceinline__ void weigh(float (&S)[kScoreRegs], const attention::RowMask& mask, int first_key,
                                        bool masked) {
    if constexpr (kC.softcap) {
#pragma unroll
      for (int i = 0; i < kScoreRegs; ++i) S[i] = ptx::tanh_approx(S[i] * params.cap_scale);
    }
    if (masked) mask.apply(S, first_key, lane % 4);
    softmax.update(S, params.scale_log2);
  }

  __device__ __forceinline__ void pack_weights(const float (&S)[kScoreRegs]) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) P[step][i] = tile::pack<kC.type>(S[8 * step + 2 * i], S[8 * step + 2 * i + 1]);
    }
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

  __device__ __forceinline__ int position_of(int row) const {
    return static_cast<int>(static_cast<uint32_t>(row) * params.ratio_reciprocal >> 16);
  }

  __device__ __forceinline__ attention::RowMask row_mask(const Tile& tile) const {
    attention::RowMask mask;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      mask.row[r] = attention::visible_keys(tile.first_position + position_of(warp_row + lane / 4 + 8 * r), tile.rows,
                                            tile.keys, params.problem.window_left, params.problem.window_right);
    }
    return mask;
  }

  __device__ __forceinline__ void attend(const Tile& tile, const BlockPlan& plan);
  __device__ __forceinline__ void finish(const Tile& tile);
  __device__ __forceinline__ void store_rows_without_keys(const Tile& tile);
};

/// The main loop: O, m and l of this warpgroup's rows over all key blocks.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::attend(const Tile& tile, const BlockPlan& plan) {
  const attention::RowMask mask = row_mask(tile);
  int block = plan.count - 1;
  int first_key = plan.origin + block * kC.block_keys;
  softmax = attention::RowSoftmax{};
#pragma unroll
  for (int i = 0; i < kC.value_dim / 2; ++i) O[i] = 0.0f;

  smem.q.wait_full(q);
  {
    float S[kScoreRegs];
    smem.k.wait_full(k);
    wait_turn();
    issue_scores(S);
    pass_turn();
    ptx::wgmma_wait_group<0>();
    tile::pin(S);
    smem.k.release(k);
    k.advance();
    weigh(S, mask, first_key, block >= plan.end_plain || block < plan.first_plain);
    pack_weights(S);
  }
  if (params.problem.key_layout != KeyLayout::kDense && first_key + kC.block_keys > tile.keys) {
    smem.v.wait_full(v);
    zero_values_from(tile.keys - first_key);
  }
  while (--block >= 0) {
    first_key -= kC.block_keys;
    float S[kScoreRegs];
    smem.k.wait_full(k);
    wait_turn();
    issue_scores(S);                                      // (1) of this block
    if constexpr (kC.rescales_under_scores()) rescale();  // (4) of the block before
    smem.v.wait_full(v);
    issue_output();                                       // (5) of the block before
    pass_turn();
    ptx::wgmma_wait_group<1>();
    tile::pin(S);
    smem.k.release(k);
    k.advance();
    weigh(S, mask, first_key, block >= plan.end_plain || block < plan.first_plain);  // (2), (3)
    ptx::wgmma_wait_group<0>();
    tile::pin(O);
    smem.v.release(v);
    v.advance();
    pack_weights(S);
    if constexpr (!kC.rescales_under_scores()) rescale();  // (4)
  }
  if constexpr (kC.rescales_under_scores()) rescale();
  smem.v.wait_full(v);
  issue_output();
  ptx::wgmma_wait_group<0>();
  tile::pin(O);
  smem.v.release(v);
  v.advance();
}

/// Divides by l, writes LSE, and moves O through this warp's own rows of Q's memory to global memory.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::finish(const Tile& tile) {
  const attention::AttentionProblem& problem = params.problem;
  const int used_rows = params.order.positions_per_tile * problem.ratio;
  float factor[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp_row + lane / 4 + 8 * r;
    const int position = tile.first_position + position_of(row);
    const int head = tile.group * problem.ratio + row - position_of(row) * problem.ratio;
    const bool exists = row < used_rows && position < tile.rows;
    const float total = attention::quad_sum(softmax.l[r]);
    attention::RowFinish done;
    if (problem.sinks != nullptr) {
      const float sink = exists ? tile::load_float<kC.type>(problem.sinks, head) : 0.0f;
      done = attention::finish_row_with_sink(softmax.m[r], total, params.scale_log2, sink);
    } else {
      done = attention::finish_row(softmax.m[r], total, params.scale_log2);
    }
    factor[r] = done.factor;
    if (exists && lane % 4 == 0) {
      const int64_t member = problem.rows_packed ? 0 : tile.member;
      problem.lse[member * problem.lse_batch_stride + head * problem.lse_head_stride +
                  int64_t{tile.row_base + position} * problem.lse_row_stride] = done.lse;
    }
  }
  const uint32_t sO = ptx::cvta_shared(smem.sQ[q.slot]);
  ptx::bar_sync(barrier_id::kGroup + group, 128);  // all rows of Q are read
#pragma unroll
  for (int j = 0; j < kC.value_dim / 16; ++j) {
    const uint32_t address =
        Plan::OTile::chunk_address(sO, warp_row + lane % 8 + (lane / 8 % 2) * 8, 2 * j + lane / 16);
    ptx::stmatrix_x4(address, tile::pack<kC.type>(O[8 * j] * factor[0], O[8 * j + 1] * factor[0]),
                     tile::pack<kC.type>(O[8 * j + 2] * factor[1], O[8 * j + 3] * factor[1]),
                     tile::pack<kC.type>(O[8 * j + 4] * factor[0], O[8 * j + 5] * factor[0]),
                     tile::pack<kC.type>(O[8 * j + 6] * factor[1], O[8 * j + 7] * factor[1]));
  }
  ptx::sync_warp();
  constexpr int kChunks = kC.value_dim / 8;
  char* output = static_cast<char*>(problem.output) +
                 2 * ((problem.rows_packed ? 0 : tile.member * problem.output_batch_stride) +
                      int64_t{tile.row_base + tile.first_position} * problem.output_row_stride +
                      int64_t{tile.group * problem.ratio} * problem.output_head_stride);
#pragma unroll
  for (int i = lane; i < 16 * kChunks; i += 32) {
    const int row = warp_row + i / kChunks;
    const int chunk = i % kChunks;
    const int position = position_of(row);
    if (row < used_rows && tile.first_position + position < tile.rows && chunk * 8 < problem.value_dim) {
      const int64_t offset = position * problem.output_row_stride +
                             (row - position * problem.ratio) * problem.output_head_stride + chunk * 8;
      ptx::st_global_v4(output + 2 * offset, ptx::ld_shared_v4(Plan::OTile::chunk_address(sO, row, chunk)));
    }
  }
  ptx::fence_proxy_async_shared();  // the copy engine may overwrite these rows with the next Q
  ptx::sync_warp();
  smem.q.release(q);
  q.advance();
}

/// A tile none of whose rows sees a key: O = 0, LSE = -inf or the sink.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::store_rows_without_keys(const Tile& tile) {
  const attention::AttentionProblem& problem = params.problem;
  const int used_rows = params.order.positions_per_tile * problem.ratio;
  for (int row = warp_row; row < warp_row + 16 && row < used_rows; ++row) {
    const int position = tile.first_position + position_of(row);
    if (position >= tile.rows) return;
    const int head = tile.group * problem.ratio + row - position_of(row) * problem.ratio;
    const int64_t member = problem.rows_packed ? 0 : tile.member;
    char* output = static_cast<char*>(problem.output) +
                   2 * (member * problem.output_batch_stride + head * problem.output_head_stride +
                        int64_t{tile.row_base + position} * problem.output_row_stride);
    for (int chunk = lane; chunk * 8 < problem.value_dim; chunk += 32) {
      ptx::st_global_v4(output + 16 * chunk, uint4{0, 0, 0, 0});
    }
    if (lane == 0) {
      problem.lse[member * problem.lse_batch_stride + head * problem.lse_head_stride +
                  int64_t{tile.row_base + position} * problem.lse_row_stride] =
          problem.sinks != nullptr ? tile::load_float<kC.type>(problem.sinks, head) : -INFINITY;
    }
  }
}

template <ForwardConfig kC>
__device__ __forceinline__ void attend_query_rows(const ForwardParams& params, Smem<kC>& smem) {
  const int warp = ptx::warp_index();
  Attender<kC> attender{params, smem, warp / 4, ptx::lane_index(), warp * 16};
  if (kC.takes_turns() && warp / 4 == kC.warpgroups - 1) attender.pass_turn();  // the first turn is group 0's
  while (true) {
    const Tile tile = attender.next_tile();
    if (tile.member < 0) break;
    const BlockPlan plan = plan_of<kC>(params, tile);
    if (plan.count == 0) {
      attender.store_rows_without_keys(tile);
      continue;
    }
    attender.attend(tile, plan);
    attender.finish(tile);
  }
}

}  // namespace ks::fa3
