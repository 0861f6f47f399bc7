// The load warp of the MLA kernel: which parts are this worker's, and bringing their keys. See mla.cuh.
#pragma once

#include "kernels/attention/parts/schedule.cuh"
#include "kernels/attention/parts/visible_keys.h"
#include "kernels/fa3_hopper/mla/mla_smem.cuh"
#include "kernels/fa3_hopper/mla/partition.h"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/tma.cuh"

namespace ks::fa3::mla {

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

}  // namespace ks::fa3::mla
