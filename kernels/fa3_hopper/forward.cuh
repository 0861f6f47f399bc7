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
#include "kernels/fa3_hopper/gather.cuh"
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
  int last_part;  // split tiles: whether this block's part was the last
};

namespace barrier_id {
inline constexpr int kTurn = 1;   // + warpgroup
inline constexpr int kGroup = 5;  // + warpgroup
}  // namespace barrier_id

/// Whether keys are gathered; false at compile time for shapes that cannot.
template <ForwardConfig kC>
__device__ __forceinline__ bool gathers(const ForwardParams& params) {
  return kC.may_gather() && params.gathers;
}

template <ForwardConfig kC>
__device__ __forceinline__ void load_tiles(const ForwardParams& params, Smem<kC>& smem, int warp);
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
  if (ptx::thread_index() == kC.threads() - 32) {
    ptx::prefetch_tensormap(&params.query_map);
    ptx::prefetch_tensormap(&params.key_map);
    ptx::prefetch_tensormap(&params.value_map);
  }
  if (ptx::thread_index() == 0) {
    const int loaders = gathers<kC>(params) ? kC.load_threads() : 1;
    smem.q.init(1, 4 * kC.warpgroups);
    smem.k.init(loaders, 4 * kC.warpgroups);
    smem.v.init(loaders, 4 * kC.warpgroups);
    smem.tiles.init(1, 4 * kC.warpgroups + (gathers<kC>(params) ? kC.load_threads() / 32 - 1 : 0));
    ptx::fence_mbarrier_init();
  }
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

/// The key blocks of a tile; both roles compute the same.
template <ForwardConfig kC>
__device__ __forceinline__ BlockPlan plan_of(const ForwardParams& params, const Tile& tile) {
  const int last = attention::smaller(tile.first_position + params.order.positions_per_tile, tile.rows) - 1;
  const BlockPlan plan =
      attention::plan_blocks(tile.first_position, last, tile.rows, tile.keys, params.problem.window_left,
                             params.problem.window_right, kC.block_keys, params.origin_step);
  if (!kC.may_split() || params.order.splits == 1) return plan;
  return attention::part_of(plan, tile.split, params.order.splits);
}

// 7. The load warp.

/// Brings `block_keys` keys from first_key on into a slot, one box or a box a page chunk. Chunks past the member's last
/// key stay as they are: their scores are masked, their values zeroed before use.
template <ForwardConfig kC, int kSlabs, int kSlabBytes>
__device__ __forceinline__ void load_block(const ForwardParams& params, const CUtensorMap* map, const Tile& tile,
                                           int first_key, PagePlace own, uint32_t slot, uint32_t barrier) {
  const attention::AttentionProblem& problem = params.problem;
  if (problem.key_layout != KeyLayout::kPaged) {
    if (ptx::elect_one()) {
      ptx::mbarrier_arrive_expect_tx(barrier, kSlabs * kSlabBytes);
      const int member = problem.key_layout == KeyLayout::kPacked ? 0 : tile.member;
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(slot + slab * kSlabBytes, map, slab * 64, tile.key_base + first_key,
                                          tile.kv_head, member, barrier, params.key_policy);
      }
    }
    return;
  }
  const int wanted = (tile.keys - first_key + params.granule - 1) / params.granule;
  const int chunks = attention::smaller(kC.block_keys / params.granule, wanted);
  const int chunk_bytes = params.granule * 128;
  if (ptx::elect_one()) ptx::mbarrier_arrive_expect_tx(barrier, chunks * chunk_bytes * kSlabs);
  for (int base = 0; base < chunks; base += 32) {
    if (base > 0) own = find_place(params, tile, first_key + (base + ptx::lane_index()) * params.granule);
    const int here = attention::smaller(chunks - base, 32);
#pragma unroll 4
    for (int i = 0; i < here; ++i) {
      const int page = ptx::shfl(own.page, i);
      const int row = ptx::shfl(own.row, i);
      if (ptx::elect_one()) {
#pragma unroll
        for (int slab = 0; slab < kSlabs; ++slab) {
          ptx::cp_async_bulk_tensor_4d_load(slot + slab * kSlabBytes + (base + i) * chunk_bytes, map, slab * 64, row,
                                            tile.kv_head, page, barrier, params.key_policy);
        }
      }
    }
  }
}

template <ForwardConfig kC>
struct Loader {
  using Plan = Smem<kC>;
  const ForwardParams& params;
  Plan& smem;
  const int warp;  ///< 0 but for the helpers of a gather
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
    if (ptx::elect_one()) {
      const uint32_t barrier = smem.q.full(q.slot);
      const uint32_t slot = ptx::cvta_shared(smem.sQ[q.slot]);
      ptx::mbarrier_arrive_expect_tx(barrier, params.query_bytes);
      const int member = params.problem.rows_packed ? 0 : tile.member;
      for (int slab = 0; slab < Plan::QTile::kSlabs; ++slab) {
        ptx::cp_async_bulk_tensor_4d_load(slot + slab * Plan::QTile::kSlabBytes, &params.query_map, slab * 64,
                                          tile.group * params.problem.ratio, tile.row_base + tile.first_position,
                                          member, barrier, ptx::kEvictFirst);
      }
    }
    ptx::sync_warp();
    q.advance();
  }

  /// The place of this lane's chunk of a block, or of its row of this warp's share where keys are gathered.
  __device__ __forceinline__ PagePlace place_in(const Tile& tile, int first_key) const {
    if (params.problem.key_layout != KeyLayout::kPaged) return {0, 0};
    const int key = gathers<kC>(params) ? warp * (kC.block_keys * 32 / kC.load_threads()) + ptx::lane_index()
                                        : ptx::lane_index() * params.granule;
    return find_place(params, tile, first_key < 0 ? -1 : first_key + key);
  }

  __device__ __forceinline__ void load_keys(const Tile& tile, int first_key, PagePlace own) {
    smem.k.wait_empty(k);
    const uint32_t slot = ptx::cvta_shared(smem.sK[k.slot]);
    if (gathers<kC>(params)) {
      gather_block<typename Plan::KTile, kC.block_keys, kC.key_dim>(params, params.key, params.key_strides, tile,
                                                                    first_key, own, slot, smem.k.full(k.slot), warp,
                                                                    kC.load_threads() / 32);
    } else {
      load_block<kC, Plan::KTile::kSlabs, Plan::KTile::kSlabBytes>(params, &params.key_map, tile, first_key, own, slot,
                                                                   smem.k.full(k.slot));
    }
    ptx::sync_warp();
    k.advance();
  }

  __device__ __forceinline__ void load_values(const Tile& tile, int first_key, PagePlace own) {
    smem.v.wait_empty(v);
    const uint32_t slot = ptx::cvta_shared(smem.sV[v.slot]);
    if (gathers<kC>(params)) {
      gather_block<typename Plan::VTile, kC.block_keys, kC.value_dim>(params, params.value, params.value_strides, tile,
                                                                      first_key, own, slot, smem.v.full(v.slot), warp,
                                                                      kC.load_threads() / 32);
    } else {
      load_block<kC, Plan::VTile::kSlabs, Plan::VTile::kSlabBytes>(params, &params.value_map, tile, first_key, own,
                                                                   slot, smem.v.full(v.slot));
    }
    ptx::sync_warp();
    v.advance();
  }

  /// All blocks of a tile, last first; values come one block behind keys, as they are used. Pages are looked up a block
  /// ahead. Only the first warp brings Q; where Q has one slot, which the tile before still holds, keys and values that
  /// fit in the rings go first.
  __device__ __forceinline__ void load_tile(const Tile& tile, const BlockPlan& plan) {
    int first_key = plan.origin + (plan.end - 1) * kC.block_keys;
    const int query_block = attention::larger(plan.begin, plan.end - (kC.query_slots == 1 ? kC.stages : 1));
    PagePlace previous = {0, 0};
    PagePlace current = place_in(tile, first_key);
#pragma unroll 1
    for (int block = plan.end - 1; block >= plan.begin - 1; --block) {
      if (plan.end <= plan.begin) break;
      const PagePlace next = place_in(tile, first_key - kC.block_keys);
      if (block >= plan.begin) load_keys(tile, first_key, current);
      if (block < plan.end - 1) load_values(tile, first_key + kC.block_keys, previous);
      if (block == query_block && warp == 0) load_query(tile);
      previous = current;
      current = next;
      first_key -= kC.block_keys;
    }
  }

  /// The tiles as the other load warps see them: like the compute warps.
  __device__ __forceinline__ Tile read_tile() {
    smem.tiles.wait_full(tiles);
    const Tile tile = smem.tile[tiles.slot];
    ptx::sync_warp();
    smem.tiles.release(tiles);
    tiles.advance();
    return tile;
  }
};

/// The first load warp takes tiles and brings all boxes; where keys are gathered, the others take part in that alone.
template <ForwardConfig kC>
__device__ __forceinline__ void load_tiles(const ForwardParams& params, Smem<kC>& smem, int warp) {
  attention::TileWalk walk(params.problem, params.order);
  if constexpr (!kC.may_gather()) warp = 0;
  Loader<kC> loader{params, smem, warp};
  int index = ptx::block_index();
#pragma unroll 1
  while (true) {
    Tile tile;
    if (warp == 0) {
      tile = walk.at(index);
      loader.publish(tile);
    } else {
      tile = loader.read_tile();
    }
    if (tile.member < 0) break;
    // The next tile is asked for early: the answer travels while this one is loaded.
    if (warp == 0 && ptx::lane_index() == 0) index = attention::take_tile(params.counters);
    loader.load_tile(tile, plan_of<kC>(params, tile));
    index = ptx::shfl(index, 0);
  }
  if (warp == 0 && ptx::lane_index() == 0) attention::finish_tiles(params.counters);
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
  bool holds_query = false;  ///< the slot of the tile before is not yet released

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
  template <bool kMasked>
  __device__ __forceinline__ bool weigh(float (&S)[kScoreRegs], const attention::RowMask& mask, int first_key) {
    if constexpr (kC.softcap) {
#pragma unroll
      for (int i = 0; i < kScoreRegs; ++i) S[i] = ptx::tanh_approx(S[i] * params.cap_scale);
    }
    if constexpr (kMasked) {
      mask.apply(S, first_key, lane % 4, params.problem.window_left, params.problem.window_right);
    }
    return softmax.update(S, params.scale_log2);
  }

  __device__ __forceinline__ void pack_weights(const float (&S)[kScoreRegs]) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) P[step][i] = tile::pack<kC.type>(S[8 * step + 2 * i], S[8 * step + 2 * i + 1]);
    }
  }

  /// ptxas moves the wait for the output product above the exponentials, where it hides nothing. A branch that hangs on
  /// the row sums, and is never taken, keeps the wait below them.
  __device__ __forceinline__ void hold_until_weighed() const {
    if (softmax.l[0] + softmax.l[1] < 0.0f) ptx::trap();
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
    return group * 64 < existing_rows(tile);
  }
  /// Rows of the tile that belong to positions of the member.
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

  __device__ __forceinline__ void attend(const Tile& tile, const BlockPlan& plan);
  __device__ __forceinline__ void stand_by(const BlockPlan& plan);
  template <bool kMasked>
  __device__ __forceinline__ void turn(const attention::RowMask& mask, int first_key);
  __device__ __forceinline__ void finish(const Tile& tile);
  __device__ __forceinline__ void store_boxes(const Tile& tile, uint32_t sO);
  __device__ __forceinline__ void store_rows(const Tile& tile, uint32_t sO);
  __device__ __forceinline__ void finish_part(const Tile& tile);
  __device__ __forceinline__ void finish_empty_part(const Tile& tile);
  __device__ __forceinline__ void combine_if_last(const Tile& tile);
  __device__ __forceinline__ void combine_row(const Tile& tile, int row);
  __device__ __forceinline__ void store_rows_without_keys(const Tile& tile);
};

/// One turn of the main loop. Masked and plain turns are separate code: with a branch between issue and wait, ptxas
/// puts the wait before the softmax, and nothing overlaps.
template <ForwardConfig kC>
template <bool kMasked>
__device__ __forceinline__ void Attender<kC>::turn(const attention::RowMask& mask, int first_key) {
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
  const bool moved = weigh<kMasked>(S, mask, first_key);  // (2), (3)
  if constexpr (kC.weighs_before_wait()) hold_until_weighed();
  ptx::wgmma_wait_group<0>();
  tile::pin(O);
  smem.v.release(v);
  v.advance();
  pack_weights(S);
  if (moved) rescale();  // (4)
}

/// The main loop: O, m and l of this warpgroup's rows over all key blocks.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::attend(const Tile& tile, const BlockPlan& plan) {
  const attention::RowMask mask = row_mask(tile);
  int block = plan.end - 1;
  int first_key = plan.origin + block * kC.block_keys;
  softmax = attention::RowSoftmax{};
#pragma unroll
  for (int i = 0; i < kC.value_dim / 2; ++i) O[i] = 0.0f;

  smem.q.wait_full(q);
  {
    float S[kScoreRegs];
    wait_keys();
    wait_turn();
    issue_scores(S);
    pass_turn();
    release_held_query();
    ptx::wgmma_wait_group<0>();
    tile::pin(S);
    smem.k.release(k);
    k.advance();
    if (block >= plan.end_plain || block < plan.first_plain) {
      weigh<true>(S, mask, first_key);
    } else {
      weigh<false>(S, mask, first_key);
    }
    pack_weights(S);
  }
  if (params.problem.key_layout != KeyLayout::kDense && first_key + kC.block_keys > tile.keys) {
    wait_values();
    zero_values_from(tile.keys - first_key);
  }
  while (--block >= plan.begin) {
    first_key -= kC.block_keys;
    if (block >= plan.end_plain || block < plan.first_plain) {
      turn<true>(mask, first_key);
    } else {
      turn<false>(mask, first_key);
    }
  }
  wait_values();
  issue_output();
  ptx::wgmma_wait_group<0>();
  tile::pin(O);
  smem.v.release(v);
  v.advance();
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

/// Divides by l, writes LSE, and moves O through this warp's own rows of Q's memory to global memory.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::finish(const Tile& tile) {
  const attention::AttentionProblem& problem = params.problem;
  float factor[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const RowPlace place = place_of(tile, warp_row + lane / 4 + 8 * r);
    const float total = attention::quad_sum(softmax.l[r]);
    attention::RowFinish done;
    if (problem.sinks != nullptr) {
      const float sink = place.exists ? tile::load_float<kC.type>(problem.sinks, place.head) : 0.0f;
      done = attention::finish_row_with_sink(softmax.m[r], total, params.scale_log2, sink);
    } else {
      done = attention::finish_row(softmax.m[r], total, params.scale_log2);
    }
    factor[r] = done.factor;
    if (place.exists && lane % 4 == 0) *lse_of(tile, place) = done.lse;
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
  ptx::fence_proxy_async_shared();  // the copy engine reads these rows, or writes the next Q over them
  ptx::sync_warp();
  const int end_position = tile.first_position + position_of(warp_row) + position_of(16);
  if (params.stores_boxes && (!problem.rows_packed || end_position <= tile.rows)) {
    store_boxes(tile, sO);
  } else {
    store_rows(tile, sO);
  }
  q.advance();
  holds_query = true;
  if constexpr (kC.query_slots == 1) release_held_query();
}

/// This warp's 16 rows, whole positions of the group's heads, leave as one box a slab; what lies past a dense member's
/// last row lies outside the map.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::store_boxes(const Tile& tile, uint32_t sO) {
  if (!ptx::elect_one()) return;
  const int row = tile.row_base + tile.first_position + position_of(warp_row);
#pragma unroll
  for (int slab = 0; slab < Plan::OTile::kSlabs; ++slab) {
    ptx::cp_async_bulk_tensor_4d_store(&params.output_map, sO + slab * Plan::OTile::kSlabBytes + warp_row * 128,
                                       slab * 64, tile.group * params.problem.ratio, row,
                                       params.problem.rows_packed ? 0 : tile.member);
  }
  ptx::cp_async_bulk_commit_group();
}

/// The same by ordinary stores, row by row, for rows that are no box.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::store_rows(const Tile& tile, uint32_t sO) {
  constexpr int kChunks = kC.value_dim / 8;
  for (int i = lane; i < 16 * kChunks; i += 32) {
    const int chunk = i % kChunks;
    const RowPlace place = place_of(tile, warp_row + i / kChunks);
    if (place.exists && chunk * 8 < params.problem.value_dim) {
      ptx::st_global_v4(output_of(tile, place) + 16 * chunk,
                        ptx::ld_shared_v4(Plan::OTile::chunk_address(sO, warp_row + i / kChunks, chunk)));
    }
  }
  ptx::fence_proxy_async_shared();
  ptx::sync_warp();
}

/// A part of a split tile: O / l and the base-2 LSE of its keys go to scratch memory, in registers' order.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::finish_part(const Tile& tile) {
  const int64_t part = int64_t{tile.number} * params.order.splits + tile.split;
  const int used_rows = params.order.positions_per_tile * params.problem.ratio;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp_row + lane / 4 + 8 * r;
    const float total = attention::quad_sum(softmax.l[r]);
    const float factor = total > 0.0f ? 1.0f / total : 0.0f;
    if (row >= existing_rows(tile)) continue;
    const int64_t at = part * used_rows + row;
    if (lane % 4 == 0) {
      params.partial_lse[at] = total > 0.0f ? fmaf(softmax.m[r], params.scale_log2, ptx::lg2_approx(total)) : -INFINITY;
    }
    float* output = params.partial_output + at * kC.value_dim + 2 * (lane % 4);
#pragma unroll
    for (int j = 0; j < kC.value_dim / 8; ++j) {
      ptx::st_global_v2(output + 8 * j, O[4 * j + 2 * r] * factor, O[4 * j + 2 * r + 1] * factor);
    }
  }
  ptx::sync_warp();
  smem.q.release(q);
  q.advance();
}

/// A part without keys: only its LSE says so.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::finish_empty_part(const Tile& tile) {
  const int64_t part = int64_t{tile.number} * params.order.splits + tile.split;
  const int used_rows = params.order.positions_per_tile * params.problem.ratio;
  const int row = ptx::thread_index() % 128;
  if (row < used_rows) params.partial_lse[part * used_rows + row] = -INFINITY;
}

/// The last part of a tile to arrive reads all parts in their order, so that the result does not depend on who was
/// last.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::combine_if_last(const Tile& tile) {
  ptx::fence_device();
  ptx::bar_sync(barrier_id::kGroup + group, 128);
  if (ptx::thread_index() % 128 == 0) {
    const bool last = ptx::atom_add_global(params.arrivals + tile.number, 1) == params.order.splits - 1;
    if (last) ptx::st_global(params.arrivals + tile.number, 0);
    smem.last_part = last;
  }
  ptx::bar_sync(barrier_id::kGroup + group, 128);
  if (!smem.last_part) return;
  ptx::fence_device();
  for (int row = ptx::warp_index() % 4; row < existing_rows(tile); row += 4) combine_row(tile, row);
}

/// One warp sums one row over the parts: weights 2^(lse - top), a sink as one more term without a value.
template <ForwardConfig kC>
__device__ __forceinline__ void Attender<kC>::combine_row(const Tile& tile, int row) {
  const RowPlace place = place_of(tile, row);
  const int splits = params.order.splits;
  const int used_rows = params.order.positions_per_tile * params.problem.ratio;
  const int64_t first = int64_t{tile.number} * splits * used_rows + row;
  float sink = -INFINITY;
  if (params.problem.sinks != nullptr) {
    sink = tile::load_float<kC.type>(params.problem.sinks, place.head) * attention::kLog2E;
  }
  // Lane i holds the LSE of parts i and i + 32.
  const float lse0 = lane < splits ? ptx::ld_global_cg(params.partial_lse + first + lane * used_rows) : -INFINITY;
  const float lse1 =
      lane + 32 < splits ? ptx::ld_global_cg(params.partial_lse + first + (lane + 32) * used_rows) : -INFINITY;
  const float top = fmaxf(attention::warp_max(fmaxf(lse0, lse1)), sink);
  const float safe = top == -INFINITY ? 0.0f : top;
  const float weight0 = ptx::ex2_approx(lse0 - safe);
  const float weight1 = ptx::ex2_approx(lse1 - safe);
  const float total = attention::warp_sum(weight0 + weight1) + ptx::ex2_approx(sink - safe);
  constexpr int kQuads = (kC.value_dim + 127) / 128;  // of 128 columns, four a lane
  float sum[kQuads][4] = {};
#pragma unroll 8
  for (int split = 0; split < splits; ++split) {
    const float weight = ptx::shfl(split < 32 ? weight0 : weight1, split % 32);
    const float* part = params.partial_output + (first + int64_t{split} * used_rows) * kC.value_dim;
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      const int column = quad * 128 + lane * 4;
      const float4 value = ptx::ld_global_cg_v4(part + (column < kC.value_dim ? column : 0));
      const bool wrote = weight > 0.0f;  // a part without keys wrote no output; what lies there may be anything
      sum[quad][0] += wrote ? weight * value.x : 0.0f;
      sum[quad][1] += wrote ? weight * value.y : 0.0f;
      sum[quad][2] += wrote ? weight * value.z : 0.0f;
      sum[quad][3] += wrote ? weight * value.w : 0.0f;
    }
  }
  const float factor = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
  for (int quad = 0; quad < kQuads; ++quad) {
    const int column = quad * 128 + lane * 4;
    if (column >= params.problem.value_dim) continue;
    ptx::st_global_v2(output_of(tile, place) + 2 * column,
                      tile::pack<kC.type>(sum[quad][0] * factor, sum[quad][1] * factor),
                      tile::pack<kC.type>(sum[quad][2] * factor, sum[quad][3] * factor));
  }
  if (lane == 0) {
    *lse_of(tile, place) = top == -INFINITY ? -INFINITY : (top + ptx::lg2_approx(total)) * attention::kLn2;
  }
}

/// A tile none of whose rows sees a key: O = 0, LSE = -inf or the sink.
template <ForwardConfig kC>
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
          problem.sinks != nullptr ? tile::load_float<kC.type>(problem.sinks, place.head) : -INFINITY;
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
    const bool has_keys = plan.end > plan.begin;
    if (kC.warpgroups > 1 && has_keys && !attender.has_rows(tile)) {
      attender.stand_by(plan);
      continue;
    }
    if (has_keys) attender.attend(tile, plan);
    if (kC.may_split() && params.order.splits > 1) {
      has_keys ? attender.finish_part(tile) : attender.finish_empty_part(tile);
      attender.combine_if_last(tile);
    } else {
      has_keys ? attender.finish(tile) : attender.store_rows_without_keys(tile);
    }
  }
  attender.release_held_query();  // shared memory stays until it is read
}

}  // namespace ks::fa3
