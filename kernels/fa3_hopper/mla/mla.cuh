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

#include "kernels/attention/parts/chained_softmax.cuh"
#include "kernels/attention/parts/mask.cuh"
#include "kernels/attention/parts/schedule.cuh"
#include "kernels/fa3_hopper/mla/params.h"
#include "kernels/fa3_hopper/mla/partition.h"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/fence.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/tile/matmul.cuh"
#include "kernels/tile/ring.cuh"
#include "kernels/tile/smem_tile.cuh"

namespace ks::fa3::mla {

using tile::Element;
using tile::RingPosition;

// 4. The configuration.
inline constexpr int kRows = 64;
inline constexpr int kBlockKeys = 64;
inline constexpr int kKeyDim = 576;
inline constexpr int kValueDim = 512;
inline constexpr int kThreads = 384;

struct MlaConfig {
  Element type;
  int cluster;      ///< blocks of threads that share keys: 1 or 2
  int early_slabs;  ///< slabs of the next scores that are issued before the other group's weights are waited for

  constexpr bool is_valid() const { return (cluster == 1 || cluster == 2) && early_slabs >= 0 && early_slabs < 9; }
};

// 5. Shared memory.

/// A run of key blocks of one tile of query rows.
struct Part {
  int member;  ///< -1: no part is left
  int group;
  int first_position;
  int rows;
  int keys;
  int row_base;
  int key_base;
  int first_block;
  int blocks;  ///< that are visible; may be none
  int first_worker;
  int parts;  ///< in which the tile's keys lie; 1: all here
};

struct alignas(1024) Smem {
  using QTile = tile::SmemTile<kRows, kKeyDim>;
  using KTile = tile::SmemTile<kBlockKeys, kKeyDim>;
  using PTile = tile::SmemTile<kRows, kBlockKeys>;  // over the last slab of KTile
  static constexpr int kValueSlabs = kValueDim / 64;

  unsigned char sQ[QTile::kBytes];
  unsigned char sK[2][KTile::kBytes];
  uint64_t full_barriers[2][KTile::kSlabs];
  uint64_t empty_barriers[2][2];
  tile::Ring<1> q;
  tile::Ring<2> parts;
  Part part[2];
  float row_max[kRows];
  float row_alpha[2][kRows];
  float row_sum[2][2][kRows];  ///< by turns of parts
  int last_part;

  __device__ __forceinline__ uint32_t full(int slot, int slab) const {
    return ptx::cvta_shared(&full_barriers[slot][slab]);
  }
  __device__ __forceinline__ uint32_t empty(int slot, int group) const {
    return ptx::cvta_shared(&empty_barriers[slot][group]);
  }
};
static_assert(sizeof(Smem) <= 232448);

namespace barrier_id {
inline constexpr int kReady = 1;  // + owner
inline constexpr int kBoth = 3;
inline constexpr int kGroup = 4;  // + group
}  // namespace barrier_id

template <MlaConfig kC>
__device__ __forceinline__ void load_parts(const MlaParams& params, Smem& smem);
template <MlaConfig kC>
__device__ __forceinline__ void attend_query_rows(const MlaParams& params, Smem& smem);

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

// 7. The load warp.

/// Walks the parts of this worker; all lanes of the warp call it together.
class PartWalk {
 public:
  __device__ __forceinline__ PartWalk(const MlaParams& params, int worker, int cluster, int rank)
      : params_(params), pairs_(params.groups / cluster), cluster_(cluster), rank_(rank) {
    int total = 0, longest = 0, units = 0;
    for (int member = ptx::lane_index(); member < params.problem.batch; member += 32) {
      const Size size = size_of(member);
      total += size.units * size.blocks;
      units += size.units;
      longest = size.units > 0 ? attention::larger(longest, size.blocks) : longest;
    }
    total = ptx::redux_add(total);
    units = ptx::redux_add(units);
    longest = ptx::redux_max(longest);
    partition_ = share_out(total, longest, units, params.workers, params.sum_cost);
    const int all = partition_.padded > 0 ? units * partition_.padded : total;
    at_ = attention::smaller(worker * partition_.quantum, all);
    end_ = attention::smaller(at_ + partition_.quantum, all);
  }

  /// The next part; its member is -1 past the end.
  __device__ __forceinline__ Part next() {
    if (at_ >= end_) return Part{-1};
    for (; base_ < params_.problem.batch; base_ += 32) {
      const int member = base_ + ptx::lane_index();
      Size size = {0, 0};
      if (member < params_.problem.batch) size = size_of(member);
      const int own = size.units * counted(size);
      int through = own;  // blocks of the members up to this lane's
      for (int distance = 1; distance < 32; distance *= 2) {
        const int below = ptx::shfl_up(through, distance);
        if (ptx::lane_index() >= distance) through += below;
      }
      const uint32_t after = ptx::ballot(before_ + through > at_);
      if (after != 0) {
        const int lane = ptx::find_first_set(after) - 1;
        const int start = before_ + ptx::shfl(through, lane) - ptx::shfl(own, lane);
        return part_of(base_ + lane, start, ptx::shfl(counted(size), lane));
      }
      before_ += ptx::shfl(through, 31);
    }
    return Part{-1};
  }

 private:
  struct Size {
    int units;
    int blocks;  ///< a unit
  };

  __device__ __forceinline__ int counted(const Size& size) const {
    return partition_.padded > 0 ? partition_.padded : size.blocks;
  }
  __device__ __forceinline__ int row_count(int member) const {
    const attention::AttentionProblem& problem = params_.problem;
    if (!problem.rows_packed) return problem.max_rows;
    return ptx::ld_global_nc(problem.cu_rows + member + 1) - ptx::ld_global_nc(problem.cu_rows + member);
  }
  /// A member without keys has one block, so that its rows are written.
  __device__ __forceinline__ Size size_of(int member) const {
    const int blocks = divide_up(attention::key_count(params_.problem, member), kBlockKeys);
    return {divide_up(row_count(member), params_.positions_per_tile) * pairs_, attention::larger(blocks, 1)};
  }

  /// The part at at_ of a member whose units begin at `start` and count for `length` blocks each.
  __device__ __forceinline__ Part part_of(int member, int start, int length) {
    const attention::AttentionProblem& problem = params_.problem;
    const int unit = (at_ - start) / length;
    const int unit_start = start + unit * length;
    const int through = attention::smaller(end_, unit_start + length);
    const int row_tile = unit / pairs_;
    Part part;
    part.member = member;
    part.group = (unit - row_tile * pairs_) * cluster_ + rank_;
    part.first_position = row_tile * params_.positions_per_tile;
    part.rows = row_count(member);
    part.keys = attention::key_count(problem, member);
    part.row_base = problem.rows_packed ? ptx::ld_global_nc(problem.cu_rows + member) : 0;
    part.key_base =
        problem.key_layout == attention::KeyLayout::kPacked ? ptx::ld_global_nc(problem.cu_keys + member) : 0;
    const int last = attention::smaller(part.first_position + params_.positions_per_tile, part.rows) - 1;
    const int visible =
        attention::visible_keys(last, part.rows, part.keys, problem.window_left, problem.window_right).end;
    const int last_block = divide_up(attention::larger(visible, 0), kBlockKeys);
    part.first_block = at_ - unit_start;
    part.blocks = attention::larger(attention::smaller(through - unit_start, last_block) - part.first_block, 0);
    const Holders holders = holders_of(unit_start, length, partition_.quantum);
    part.first_worker = holders.first;
    part.parts = holders.count;
    at_ = through;
    return part;
  }

  const MlaParams& params_;
  const int pairs_;
  const int cluster_;
  const int rank_;
  Partition partition_;
  int at_;
  int end_;
  int base_ = 0;    ///< first member of the 32 looked at
  int before_ = 0;  ///< blocks of the members before base_
};

/// Where a run of keys that one box brings lies.
struct BoxPlace {
  int key;
  int page;  ///< or member
};

template <MlaConfig kC>
struct Loader {
  const MlaParams& params;
  Smem& smem;
  const int rank;
  RingPosition<1> q;
  RingPosition<2> k;
  RingPosition<2> parts;

  __device__ __forceinline__ void publish(const Part& part) {
    smem.parts.wait_empty(parts);
    if (ptx::lane_index() == 0) {
      smem.part[parts.slot] = part;
      ptx::mbarrier_arrive(smem.parts.full(parts.slot));
    }
    ptx::sync_warp();
    parts.advance();
  }

  __device__ __forceinline__ void load_query(const Part& part) {
    smem.q.wait_empty(q);
    if (ptx::elect_one()) {
      const uint32_t barrier = smem.q.full(0);
      const uint32_t slot = ptx::cvta_shared(smem.sQ);
      ptx::mbarrier_arrive_expect_tx(barrier, params.query_bytes);
      const int member = params.problem.rows_packed ? 0 : part.member;
      for (int slab = 0; slab < Smem::QTile::kSlabs; ++slab) {
        const bool latent = slab < Smem::kValueSlabs;
        ptx::cp_async_bulk_tensor_4d_load(slot + slab * Smem::QTile::kSlabBytes,
                                          latent ? &params.latent_map : &params.rope_map, latent ? slab * 64 : 0,
                                          part.group * params.problem.ratio, part.row_base + part.first_position,
                                          member, barrier, ptx::kEvictFirst);
      }
    }
    ptx::sync_warp();
    q.advance();
  }

  /// How many boxes a block takes, chunk by chunk; chunks past the last key are not loaded.
  __device__ __forceinline__ int chunks_of(const Part& part, int first_key) const {
    if (params.granule == kBlockKeys) return 1;
    return attention::smaller(kBlockKeys / params.granule, divide_up(part.keys - first_key, params.granule));
  }

  /// The place of this lane's box of a block; any place for lanes without one.
  __device__ __forceinline__ BoxPlace place_of(const Part& part, int block) const {
    const attention::AttentionProblem& problem = params.problem;
    const int key = block * kBlockKeys + ptx::lane_index() * params.granule;
    if (problem.key_layout != attention::KeyLayout::kPaged) {
      return {part.key_base + key, problem.key_layout == attention::KeyLayout::kPacked ? 0 : part.member};
    }
    if (block >= part.first_block + part.blocks || key >= part.keys) return {0, 0};
    const int entry = key / problem.page_size;
    const int32_t* table = problem.page_table + int64_t{part.member} * problem.page_table_stride;
    return {key - entry * problem.page_size, ptx::ld_global_nc(table + entry)};
  }

  /// One box; in a cluster, into both blocks.
  __device__ __forceinline__ void load_box(uint32_t to, int slab, BoxPlace place, uint32_t barrier) const {
    if constexpr (kC.cluster > 1) {
      ptx::cp_async_bulk_tensor_4d_load_multicast(to, &params.key_map, slab * 64, place.key, 0, place.page, barrier,
                                                  (1 << kC.cluster) - 1, params.key_policy);
    } else {
      ptx::cp_async_bulk_tensor_4d_load(to, &params.key_map, slab * 64, place.key, 0, place.page, barrier,
                                        params.key_policy);
    }
  }
  __device__ __forceinline__ bool is_own(int slab) const { return kC.cluster == 1 || slab % kC.cluster == rank; }

  /// The first half of the value columns is group 0's, the second group 1's; P, in the last slab, is the other's.
  __device__ __forceinline__ void wait_empty(int slab) const {
    if (slab == 0) tile::wait(smem.empty(k.slot, 0), k.parity ^ 1);
    if (slab == Smem::kValueSlabs / 2) tile::wait(smem.empty(k.slot, 1), k.parity ^ 1);
  }

  /// Brings a block whose keys lie together: one lane does it all. Measured: 2 % faster than all lanes at it, slab by
  /// slab.
  __device__ __forceinline__ void load_whole_block(BoxPlace place) const {
    const uint32_t slot = ptx::cvta_shared(smem.sK[k.slot]);
    if (ptx::elect_one()) {
#pragma unroll
      for (int slab = 0; slab < Smem::KTile::kSlabs; ++slab) {
        wait_empty(slab);
        const uint32_t barrier = smem.full(k.slot, slab);
        ptx::mbarrier_arrive_expect_tx(barrier, Smem::KTile::kSlabBytes);
        if (is_own(slab)) load_box(slot + slab * Smem::KTile::kSlabBytes, slab, place, barrier);
      }
    }
    ptx::sync_warp();
  }

  /// Brings a block in several boxes.
  __device__ __forceinline__ void load_scattered_block(int chunks, BoxPlace own) const {
    const int chunk_bytes = params.granule * 128;
    const uint32_t slot = ptx::cvta_shared(smem.sK[k.slot]);
#pragma unroll 1
    for (int slab = 0; slab < Smem::KTile::kSlabs; ++slab) {
      wait_empty(slab);
      const uint32_t barrier = smem.full(k.slot, slab);
      if (ptx::elect_one()) ptx::mbarrier_arrive_expect_tx(barrier, chunks * chunk_bytes);
      for (int i = 0; i < chunks && is_own(slab); ++i) {
        const BoxPlace place = {ptx::shfl(own.key, i), ptx::shfl(own.page, i)};
        if (ptx::elect_one()) load_box(slot + slab * Smem::KTile::kSlabBytes + i * chunk_bytes, slab, place, barrier);
      }
    }
  }

  __device__ __forceinline__ void load_block(const Part& part, int block, BoxPlace own) {
    if (params.granule == kBlockKeys) {
      load_whole_block({ptx::shfl(own.key, 0), ptx::shfl(own.page, 0)});
    } else {
      load_scattered_block(chunks_of(part, block * kBlockKeys), own);
    }
    k.advance();
  }

  /// This block's share of a key block into L2: what lies in shared memory is too little to hide the way from memory.
  __device__ __forceinline__ void prefetch_block(const Part& part, int block, BoxPlace own) const {
    if (block >= part.first_block + part.blocks) return;
    const int chunks = chunks_of(part, block * kBlockKeys);
    for (int i = 0; i < chunks; ++i) {
      const BoxPlace place = {ptx::shfl(own.key, i), ptx::shfl(own.page, i)};
      if (!ptx::elect_one()) continue;
#pragma unroll
      for (int slab = 0; slab < Smem::KTile::kSlabs; ++slab) {
        if (is_own(slab)) {
          ptx::cp_async_bulk_prefetch_tensor_4d(&params.key_map, slab * 64, place.key, 0, place.page);
        }
      }
    }
  }

  /// All blocks of a part. The first keys go before Q, which the part before may still hold; pages are looked up three
  /// blocks ahead, and brought to L2 two ahead.
  __device__ __forceinline__ void load_part(const Part& part) {
    if (part.blocks == 0) load_query(part);
    BoxPlace current = place_of(part, part.first_block);
    BoxPlace second = place_of(part, part.first_block + 1);
    BoxPlace third = place_of(part, part.first_block + 2);
#pragma unroll 1
    for (int i = 0; i < part.blocks; ++i) {
      const int block = part.first_block + i;
      const BoxPlace fourth = place_of(part, block + 3);
      load_block(part, block, current);
      if (i == 0) load_query(part);
      prefetch_block(part, block + 2, third);
      current = second;
      second = third;
      third = fourth;
    }
  }
};

template <MlaConfig kC>
__device__ __forceinline__ void load_parts(const MlaParams& params, Smem& smem) {
  const int rank = kC.cluster > 1 ? ptx::cluster_rank() : 0;
  PartWalk walk(params, ptx::block_index() / kC.cluster, kC.cluster, rank);
  Loader<kC> loader{params, smem, rank};
#pragma unroll 1
  while (true) {
    const Part part = walk.next();
    loader.publish(part);
    if (part.member < 0) break;
    loader.load_part(part);
  }
}

// 8. The compute warpgroups.

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

/// Both groups' sums of each of this thread's rows; both groups are done with Q and all blocks after it.
template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::exchange_sums(float (&total)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float own = attention::quad_sum(softmax.l[r]);
    if (lane % 4 == 0) smem.row_sum[parts.slot][group][warp_row + lane / 4 + 8 * r] = own;
  }
  ptx::bar_sync(barrier_id::kBoth, 256);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp_row + lane / 4 + 8 * r;
    total[r] = smem.row_sum[parts.slot][0][row] + smem.row_sum[parts.slot][1][row];
  }
}

/// Writes factor x O and the LSE of this warp's rows, through Q's memory.
template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::finish(const Part& part, const float (&factor)[2],
                                                     const float (&lse)[2]) {
  const attention::AttentionProblem& problem = params.problem;
  const int rows = existing_rows(part);
  const int64_t member_lse = problem.rows_packed ? 0 : part.member * problem.lse_batch_stride;
  const int64_t member_output = problem.rows_packed ? 0 : part.member * problem.output_batch_stride;
  if (group == 0 && lane % 4 == 0) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = warp_row + lane / 4 + 8 * r;
      const int step = row / problem.ratio;
      if (row >= rows) continue;
      problem.lse[member_lse + int64_t{part.row_base + part.first_position + step} * problem.lse_row_stride +
                  (part.group * problem.ratio + row - step * problem.ratio) * problem.lse_head_stride] = lse[r];
    }
  }
  const uint32_t sO = ptx::cvta_shared(smem.sQ) + group * kHalfSlabs * Smem::QTile::kSlabBytes;
#pragma unroll
  for (int j = 0; j < kOutputRegs / 8; ++j) {
    ptx::stmatrix_x4(Smem::QTile::chunk_address(sO, warp_row + lane % 8 + (lane / 8 % 2) * 8, 2 * j + lane / 16),
                     tile::pack<kC.type>(O[8 * j] * factor[0], O[8 * j + 1] * factor[0]),
                     tile::pack<kC.type>(O[8 * j + 2] * factor[1], O[8 * j + 3] * factor[1]),
                     tile::pack<kC.type>(O[8 * j + 4] * factor[0], O[8 * j + 5] * factor[0]),
                     tile::pack<kC.type>(O[8 * j + 6] * factor[1], O[8 * j + 7] * factor[1]));
  }
  ptx::sync_warp();
  for (int i = 0; i < 16 && warp_row + i < rows; ++i) {  // a row of the half: 32 chunks, one a lane
    const int row = warp_row + i;
    const int step = row / problem.ratio;
    char* to = static_cast<char*>(problem.output) +
               2 * (member_output + int64_t{part.row_base + part.first_position + step} * problem.output_row_stride +
                    (part.group * problem.ratio + row - step * problem.ratio) * problem.output_head_stride +
                    group * (kValueDim / 2));
    ptx::st_global_v4(to + 16 * lane, ptx::ld_shared_v4(Smem::QTile::chunk_address(sO, row, lane)));
  }
  ptx::fence_proxy_async_shared();  // the copy engine writes the next Q over these rows
  ptx::sync_warp();
}

template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::finish_whole(const Part& part) {
  float factor[2] = {0.0f, 0.0f};
  float lse[2] = {-INFINITY, -INFINITY};
  if (part.blocks > 0) {
    float total[2];
    exchange_sums(total);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const attention::RowFinish done = attention::finish_row(softmax.m[r], total[r], params.scale_log2);
      factor[r] = done.factor;
      lse[r] = done.lse;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kOutputRegs; ++i) O[i] = 0.0f;
  }
  finish(part, factor, lse);
}

/// Where a part's results lie in scratch memory; a worker has at most two: one that began with an earlier worker, and
/// one that goes on with the next.
__device__ __forceinline__ int64_t partial_of(int worker_block, bool is_first) {
  return int64_t{worker_block} * 2 + (is_first ? 1 : 0);
}

/// A part of a tile: O / l and the base-2 LSE of its keys.
template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::finish_part(const Part& part) {
  float total[2];
  exchange_sums(total);
  const int64_t slot = partial_of(worker_block, part.first_worker == worker_block / kC.cluster);
  float factor[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    factor[r] = total[r] > 0.0f ? 1.0f / total[r] : 0.0f;
    if (group == 0 && lane % 4 == 0) {
      params.partial_lse[slot * kRows + warp_row + lane / 4 + 8 * r] =
          total[r] > 0.0f ? fmaf(softmax.m[r], params.scale_log2, ptx::lg2_approx(total[r])) : -INFINITY;
    }
  }
  if (warp_row >= existing_rows(part)) return;
  float* output = params.partial_output + slot * kRows * kValueDim + ptx::thread_index() * 4;
#pragma unroll
  for (int i = 0; i < kOutputRegs / 4; ++i) {
    ptx::st_global_v4(output + i * 1024, O[4 * i] * factor[0], O[4 * i + 1] * factor[0], O[4 * i + 2] * factor[1],
                      O[4 * i + 3] * factor[1]);
  }
}

/// A part without visible keys: only its LSE says so.
template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::finish_empty_part(const Part& part) {
  const int64_t slot = partial_of(worker_block, part.first_worker == worker_block / kC.cluster);
  if (ptx::thread_index() < kRows) params.partial_lse[slot * kRows + ptx::thread_index()] = -INFINITY;
}

/// Whether this block is the last of a tile's to be done with its part.
template <MlaConfig kC>
__device__ __forceinline__ bool Attender<kC>::is_last_part(const Part& part) {
  ptx::fence_device();
  ptx::bar_sync(barrier_id::kBoth, 256);
  if (ptx::thread_index() == 0) {
    int32_t* counter = params.arrivals + part.first_worker * kC.cluster + worker_block % kC.cluster;
    const bool last = ptx::atom_add_global(counter, 1) == part.parts - 1;
    if (last) ptx::st_global(counter, 0);
    smem.last_part = last;
  }
  ptx::bar_sync(barrier_id::kBoth, 256);
  const bool last = smem.last_part != 0;
  ptx::fence_device();
  return last;
}

/// Sums all parts in their order, so that the result does not depend on who was last.
template <MlaConfig kC>
__device__ __forceinline__ void Attender<kC>::combine(const Part& part) {
  const auto slot_of = [&](int index) {
    return partial_of((part.first_worker + index) * kC.cluster + worker_block % kC.cluster, index == 0);
  };
  const int row = warp_row + lane / 4;
  const bool exists = warp_row < existing_rows(part);
  float top[2] = {-INFINITY, -INFINITY};
#pragma unroll 4
  for (int index = 0; index < part.parts; ++index) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      top[r] = fmaxf(top[r], ptx::ld_global_cg(params.partial_lse + slot_of(index) * kRows + row + 8 * r));
    }
  }
  float total[2] = {0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < kOutputRegs; ++i) O[i] = 0.0f;
#pragma unroll 1
  for (int index = 0; index < part.parts && exists; ++index) {
    float weight[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float lse = ptx::ld_global_cg(params.partial_lse + slot_of(index) * kRows + row + 8 * r);
      weight[r] = lse == -INFINITY ? 0.0f : ptx::ex2_approx(lse - top[r]);
      total[r] += weight[r];
    }
    if (!ptx::any(weight[0] > 0.0f || weight[1] > 0.0f)) continue;  // no key in this part: it wrote no output
    const float* output = params.partial_output + slot_of(index) * kRows * kValueDim + ptx::thread_index() * 4;
#pragma unroll
    for (int i = 0; i < kOutputRegs / 4; ++i) {
      const float4 value = ptx::ld_global_cg_v4(output + i * 1024);
      O[4 * i] = fmaf(weight[0], value.x, O[4 * i]);
      O[4 * i + 1] = fmaf(weight[0], value.y, O[4 * i + 1]);
      O[4 * i + 2] = fmaf(weight[1], value.z, O[4 * i + 2]);
      O[4 * i + 3] = fmaf(weight[1], value.w, O[4 * i + 3]);
    }
  }
  float factor[2];
  float lse[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    factor[r] = total[r] > 0.0f ? 1.0f / total[r] : 0.0f;
    lse[r] = total[r] > 0.0f ? (top[r] + ptx::lg2_approx(total[r])) * attention::kLn2 : -INFINITY;
  }
  finish(part, factor, lse);
}

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

}  // namespace ks::fa3::mla
