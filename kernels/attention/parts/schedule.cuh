// Which tile of query rows a block works on next. One kernel covers every layout: dense rows by arithmetic, packed rows
// by a walk over the members' lengths in device memory (the host never reads them).
//
// Blocks take tiles from one counter, in an order that puts long tiles first: within a section of (head, member) pairs
// whose keys and values fit in L2 together, positions run from last to first, pairs innermost. The last block to finish
// sets the counters back to zero, so that the next call (or graph replay) finds them as this one did.
#pragma once

#include "kernels/attention/problem.h"
#include "kernels/ptx/fence.cuh"
#include "kernels/ptx/ldst.cuh"
#include "kernels/ptx/warp.cuh"

namespace ks::attention {

/// How tiles are numbered; filled on the host.
struct TileOrder {
  int positions_per_tile;  ///< query positions a tile (times the packed heads = rows used)
  int groups;              ///< packed head groups: query_heads / ratio
  int groups_per_kv_head;
  int row_tiles;          ///< tiles along the positions of the longest member
  int tile_count;         ///< dense rows: all tiles
  int pairs_per_section;  ///< (group, member) pairs that share L2
  int splits;             ///< parts into which the keys of every tile are cut
};

/// One tile of query rows and the keys of its member.
struct Tile {
  int member;  ///< -1: no tile is left
  int group;
  int first_position;
  int rows;
  int keys;
  int row_base;  ///< packed rows: where the member begins
  int key_base;  ///< packed keys: likewise
  int kv_head;
  int number;  ///< place in the order, the same for all splits
  int split;   ///< which part of the keys
};

/// The number of keys of a member.
__device__ __forceinline__ int key_count(const AttentionProblem& problem, int member) {
  switch (problem.key_layout) {
    case KeyLayout::kDense:
      return problem.max_keys;
    case KeyLayout::kPacked:
      return ptx::ld_global_nc(problem.cu_keys + member + 1) - ptx::ld_global_nc(problem.cu_keys + member);
    default:
      return ptx::ld_global_nc(problem.key_lengths + member);
  }
}

/// Completes a tile whose member, group and row tile are known.
__device__ __forceinline__ Tile make_tile(const AttentionProblem& problem, const TileOrder& order, int member,
                                          int group, int row_tile) {
  Tile tile;
  tile.member = member;
  tile.group = group;
  tile.kv_head = group / order.groups_per_kv_head;
  tile.first_position = row_tile * order.positions_per_tile;
  tile.row_base = problem.rows_packed ? ptx::ld_global_nc(problem.cu_rows + member) : 0;
  tile.rows = problem.rows_packed ? ptx::ld_global_nc(problem.cu_rows + member + 1) - tile.row_base : problem.max_rows;
  tile.keys = key_count(problem, member);
  tile.key_base = problem.key_layout == KeyLayout::kPacked ? ptx::ld_global_nc(problem.cu_keys + member) : 0;
  return tile;
}

/// Walks the tiles in order; all lanes of one warp call it together. Indices only grow, so a walk over packed members
/// goes on where it was.
class TileWalk {
 public:
  __device__ __forceinline__ TileWalk(const AttentionProblem& problem, const TileOrder& order)
      : problem_(problem), order_(order) {}

  /// The tile with this index; its member is -1 past the end.
  __device__ __forceinline__ Tile at(int index) {
    const int number = order_.splits > 1 ? index / order_.splits : index;
    Tile tile = problem_.rows_packed ? packed(number) : dense(number);
    tile.number = number;
    tile.split = index - number * order_.splits;
    return tile;
  }

 private:
  __device__ __forceinline__ Tile dense(int index) const {
    if (index >= order_.tile_count) return Tile{-1};
    const int pairs = order_.groups * problem_.batch;
    const int section = index / (order_.pairs_per_section * order_.row_tiles);
    const int first_pair = section * order_.pairs_per_section;
    const int width = order_.pairs_per_section < pairs - first_pair ? order_.pairs_per_section : pairs - first_pair;
    const int rest = index - first_pair * order_.row_tiles;
    const int step = rest / width;
    const int pair = first_pair + rest - step * width;
    const int member = pair / order_.groups;
    return make_tile(problem_, order_, member, pair - member * order_.groups, order_.row_tiles - 1 - step);
  }

  __device__ __forceinline__ Tile packed(int index) {
    for (; base_ < problem_.batch; base_ += 32) {
      const int member = base_ + ptx::lane_index();
      int own = 0;
      if (member < problem_.batch) {
        const int rows =
            ptx::ld_global_nc(problem_.cu_rows + member + 1) - ptx::ld_global_nc(problem_.cu_rows + member);
        own = (rows + order_.positions_per_tile - 1) / order_.positions_per_tile * order_.groups;
      }
      int through = own;  // tiles of the members up to this lane's
      for (int distance = 1; distance < 32; distance *= 2) {
        const int below = ptx::shfl_up(through, distance);
        if (ptx::lane_index() >= distance) through += below;
      }
      const uint32_t after = ptx::ballot(before_ + through > index);
      if (after != 0) return packed_member(index, ptx::find_first_set(after) - 1, own, through);
      before_ += ptx::shfl(through, 31);
    }
    return Tile{-1};
  }

  __device__ __forceinline__ Tile packed_member(int index, int lane, int own, int through) const {
    const int tiles = ptx::shfl(own, lane);
    const int local = index - before_ - (ptx::shfl(through, lane) - tiles);
    const int step = local / order_.groups;
    return make_tile(problem_, order_, base_ + lane, local - step * order_.groups, tiles / order_.groups - 1 - step);
  }

  const AttentionProblem& problem_;
  const TileOrder& order_;
  int base_ = 0;    ///< packed: first member of the 32 looked at
  int before_ = 0;  ///< packed: tiles of the members before base_
};

/// Counters in `state`: zero before and after every call.
struct TileCounters {
  int32_t taken;     ///< tiles handed out beyond the first of each block
  int32_t finished;  ///< blocks that take no more
};

/// The next tile index for this block; one lane calls it.
__device__ __forceinline__ int take_tile(TileCounters* counters) {
  return ptx::block_count() + ptx::atom_add_global(&counters->taken, 1);
}

/// Called once by every block after its last take_tile; the last one resets the counters.
__device__ __forceinline__ void finish_tiles(TileCounters* counters) {
  ptx::fence_device();
  if (ptx::atom_add_global(&counters->finished, 1) != ptx::block_count() - 1) return;
  ptx::st_global(&counters->taken, 0);
  ptx::st_global(&counters->finished, 0);
}

}  // namespace ks::attention
