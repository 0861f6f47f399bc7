// The load warp of a decode block: finds the worker's share of all units from the lengths in device memory, publishes
// it piece by piece, and brings queries, keys and values.
#pragma once

#include "kernels/fa3_hopper/decode/decode_smem.cuh"
#include "kernels/ptx/tma.cuh"

namespace ks::fa3 {

/// What a member brings; each lane of the load warp holds one of 32 members.
struct DecodeMember {
  int rows;
  int row_base;
  int keys;
  int key_base;
  int leftpad;
};

/// Where a chunk of `granule` keys lies in the cache.
struct ChunkPlace {
  int page;
  int row;
};

/// The places of 64 chunks of a member from `chunk` on: lane i holds chunks i and i + 32.
struct ChunkWindow {
  int member = -1;
  int chunk = 0;
  ChunkPlace own[2];
};

template <DecodeConfig kC>
class DecodeLoader {
 public:
  __device__ __forceinline__ DecodeLoader(const DecodeParams& params, DecodeSmem<kC>& smem)
      : params_(params), smem_(smem) {}

  /// The barriers are made while lengths and pages are already on their way.
  __device__ __forceinline__ void run() {
    if (ptx::elect_one()) {
      ptx::prefetch_tensormap(&params_.query_map);
      ptx::prefetch_tensormap(&params_.key_map);
      ptx::prefetch_tensormap(&params_.value_map);
    }
    ptx::sync_warp();
    guess_window();
    const int units = count_units();
    ptx::sync_block();
    const int workers = choose_workers(units, params_.multiprocessors, params_.most_workers);
    const int worker = ptx::block_index();
    int unit = worker < workers && units > 0 ? first_unit(worker, workers, units) : units;
    const int end = worker < workers && units > 0 ? first_unit(worker + 1, workers, units) : units;
#pragma unroll 1
    while (unit < end) {
      int after;
      const DecodePiece piece = piece_at(unit, end, units, workers, after);
      publish(piece);
      load_blocks(piece);
      unit = after;
    }
    publish(DecodePiece{-1});
  }

 private:
  using Config = DecodeConfig;

  __device__ __forceinline__ bool is_paged() const {
    return params_.problem.key_layout == attention::KeyLayout::kPaged;
  }

  __device__ __forceinline__ DecodeMember member_at(int member) const {
    const attention::AttentionProblem& problem = params_.problem;
    DecodeMember m;
    m.row_base = problem.rows_packed ? ptx::ld_global_nc(problem.cu_rows + member) : 0;
    m.rows = problem.rows_packed ? ptx::ld_global_nc(problem.cu_rows + member + 1) - m.row_base : problem.max_rows;
    m.key_base = 0;
    switch (problem.key_layout) {
      case attention::KeyLayout::kDense:
        m.keys = problem.max_keys;
        break;
      case attention::KeyLayout::kPacked:
        m.key_base = ptx::ld_global_nc(problem.cu_keys + member);
        m.keys = ptx::ld_global_nc(problem.cu_keys + member + 1) - m.key_base;
        break;
      default:
        m.keys = ptx::ld_global_nc(problem.key_lengths + member);
    }
    m.leftpad = params_.leftpad != nullptr ? ptx::ld_global_nc(params_.leftpad + member) : 0;
    return m;
  }

  __device__ __forceinline__ DecodeBlocks blocks_of(const DecodeMember& m) const {
    return decode_blocks(m.rows, m.keys, m.leftpad, params_.problem.window_left, params_.problem.window_right,
                         Config::kBlockKeys, params_.origin_step);
  }
  /// Units of all tiles of a member.
  __device__ __forceinline__ int units_of(const DecodeMember& m) const {
    return tile_units(m.rows, blocks_of(m).count) * params_.problem.kv_heads;
  }

  /// All units of the call. Leaves the first 32 members in the lanes.
  __device__ __forceinline__ int count_units() {
    const int batch = params_.problem.batch;
    int own = 0;
#pragma unroll 4
    for (int base = 0; base < batch; base += 32) {
      const int member = base + ptx::lane_index();
      const DecodeMember m = member_at(attention::smaller(member, batch - 1));
      const int units = member < batch ? units_of(m) : 0;
      own += units;
      if (base == 0) take_group(m, units);
    }
    for (int mask = 16; mask > 0; mask /= 2) own += ptx::shfl_xor(own, mask);
    return own;
  }

  __device__ __forceinline__ void take_group(const DecodeMember& m, int units) {
    held_ = m;
    held_units_ = units;
    through_ = units;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int below = ptx::shfl_up(through_, distance);
      if (ptx::lane_index() >= distance) through_ += below;
    }
  }

  /// The piece that starts at a unit of this worker's; `after` is the first unit past it.
  __device__ __forceinline__ DecodePiece piece_at(int unit, int end, int units, int workers, int& after) {
    uint32_t past = ptx::ballot(group_first_unit_ + through_ > unit);
    while (past == 0) {
      group_first_unit_ += ptx::shfl(through_, 31);
      group_ += 32;
      const int member = group_ + ptx::lane_index();
      const DecodeMember m = member_at(attention::smaller(member, params_.problem.batch - 1));
      take_group(m, member < params_.problem.batch ? units_of(m) : 0);
      past = ptx::ballot(group_first_unit_ + through_ > unit);
    }
    const int lane = ptx::find_first_set(past) - 1;
    const int member_units = ptx::shfl(held_units_, lane);
    const int member_first = group_first_unit_ + ptx::shfl(through_, lane) - member_units;
    const int tile_length = member_units / params_.problem.kv_heads;
    DecodeMember m;
    m.rows = ptx::shfl(held_.rows, lane);
    m.row_base = ptx::shfl(held_.row_base, lane);
    m.keys = ptx::shfl(held_.keys, lane);
    m.key_base = ptx::shfl(held_.key_base, lane);
    m.leftpad = ptx::shfl(held_.leftpad, lane);
    DecodePiece piece;
    piece.member = group_ + lane;
    piece.kv_head = (unit - member_first) / tile_length;
    piece.rows = m.rows;
    piece.row_base = m.row_base;
    piece.keys = m.keys;
    piece.key_base = m.key_base;
    piece.leftpad = m.leftpad;
    piece.blocks = blocks_of(m);
    const int tile_first = member_first + piece.kv_head * tile_length;
    after = attention::smaller(end, tile_first + tile_length);
    piece.first_block = unit - tile_first;
    piece.end_block = attention::smaller(after - tile_first, piece.blocks.count);
    piece.first_worker = worker_of(tile_first, workers, units);
    piece.parts = worker_of(tile_first + tile_length - 1, workers, units) - piece.first_worker + 1;
    return piece;
  }

  /// Hands a piece to the compute warps, and brings its query.
  __device__ __forceinline__ void publish(const DecodePiece& piece) {
    smem_.pieces.wait_empty(pieces_);
    if (ptx::elect_one()) {
      smem_.piece[pieces_.slot] = piece;
      const uint32_t barrier = smem_.pieces.full(pieces_.slot);
      if (piece.member < 0) {
        ptx::mbarrier_arrive(barrier);
      } else {
        ptx::mbarrier_arrive_expect_tx(barrier, params_.query_bytes);
        ptx::cp_async_bulk_tensor_5d_load(ptx::cvta_shared(smem_.sQ[pieces_.slot]), &params_.query_map, 0,
                                          piece.kv_head * params_.problem.ratio, piece.row_base, 0,
                                          params_.problem.rows_packed ? 0 : piece.member, barrier, ptx::kEvictFirst);
      }
    }
    ptx::sync_warp();
    pieces_.advance();
  }

  __device__ __forceinline__ ChunkPlace place_of(int member, int chunk) const {
    const int key = chunk * params_.granule;
    if (key >= params_.problem.max_keys) return {0, 0};
    const int page_size = params_.problem.page_size;
    const int entry = params_.page_shift >= 0 ? key >> params_.page_shift : key / page_size;
    const int32_t* table = params_.problem.page_table + int64_t{member} * params_.problem.page_table_stride;
    return {ptx::ld_global_nc(table + entry), key - entry * page_size};
  }
  __device__ __forceinline__ ChunkWindow window_at(int member, int chunk) const {
    ChunkWindow window;
    window.member = member;
    window.chunk = chunk;
    window.own[0] = place_of(member, chunk + ptx::lane_index());
    window.own[1] = place_of(member, chunk + 32 + ptx::lane_index());
    return window;
  }

  /// Looks up the pages of where this worker begins if every member is as long as it may be, before lengths are known.
  __device__ __forceinline__ void guess_window() {
    if (!is_paged()) return;
    const attention::AttentionProblem& problem = params_.problem;
    const DecodeBlocks blocks = blocks_of({problem.max_rows, 0, problem.max_keys, 0, 0});
    const int length = tile_units(problem.max_rows, blocks.count);
    const int units = length * problem.kv_heads * problem.batch;
    const int workers = choose_workers(units, params_.multiprocessors, params_.most_workers);
    if (ptx::block_index() >= workers) return;
    const int unit = first_unit(ptx::block_index(), workers, units);
    const int tile = unit / length;
    const int first_key = blocks.origin + (unit - tile * length) * Config::kBlockKeys;
    window_ = window_at(tile / problem.kv_heads, first_key / params_.granule);
  }

  /// All blocks of a piece, keys and values in turns.
  __device__ __forceinline__ void load_blocks(const DecodePiece& piece) {
    const int granule = params_.granule;
    const int block_chunks = Config::kBlockKeys / granule;
    int first_key = piece.blocks.origin + piece.first_block * Config::kBlockKeys;
    ChunkWindow ahead;
    int at = 0;  // of the block's first chunk in the window
    if (is_paged() && piece.first_block < piece.end_block) {
      const int chunk = first_key / granule;
      if (window_.member != piece.member || window_.chunk != chunk) window_ = window_at(piece.member, chunk);
      ahead = window_at(piece.member, chunk + 64);
    }
#pragma unroll 1
    for (int block = piece.first_block; block < piece.end_block; ++block) {
      if (is_paged() && at == 64) {
        window_ = ahead;
        ahead = window_at(piece.member, window_.chunk + 64);
        at = 0;
      }
      const int wanted = (piece.blocks.end - first_key + granule - 1) / granule;
      const int chunks = attention::smaller(block_chunks, wanted);
      load_half(&params_.key_map, piece, first_key, at, chunks);
      load_half(&params_.value_map, piece, first_key, at, chunks);
      first_key += Config::kBlockKeys;
      at += block_chunks;
    }
  }

  /// `chunks` boxes of keys or of values into the next slot. Chunks past the last visible key stay as they are: their
  /// scores are masked, their values never used.
  __device__ __forceinline__ void load_half(const CUtensorMap* map, const DecodePiece& piece, int first_key, int at,
                                            int chunks) {
    const int chunk_bytes = params_.granule * kC.row_bytes();
    smem_.kv.wait_empty(kv_);
    uint32_t to = ptx::cvta_shared(smem_.sKV[kv_.slot]);
    const uint32_t barrier = smem_.kv.full(kv_.slot);
    if (ptx::elect_one()) ptx::mbarrier_arrive_expect_tx(barrier, chunks * chunk_bytes);
    if (!is_paged()) {
      if (ptx::elect_one()) {
        const int member = params_.problem.key_layout == attention::KeyLayout::kPacked ? 0 : piece.member;
        for (int i = 0; i < chunks; ++i) {
          ptx::cp_async_bulk_tensor_5d_load(to + i * chunk_bytes, map, 0,
                                            piece.key_base + first_key + i * params_.granule, 0, piece.kv_head, member,
                                            barrier, ptx::kEvictFirst);
        }
      }
    } else {
#pragma unroll 4
      for (int i = 0; i < chunks; ++i) {
        const bool upper = at + i >= 32;
        const int page = ptx::shfl(upper ? window_.own[1].page : window_.own[0].page, (at + i) % 32);
        const int row = ptx::shfl(upper ? window_.own[1].row : window_.own[0].row, (at + i) % 32);
        if (ptx::elect_one()) {
          ptx::cp_async_bulk_tensor_5d_load(to + i * chunk_bytes, map, 0, row, 0, piece.kv_head, page, barrier,
                                            ptx::kEvictFirst);
        }
      }
    }
    ptx::sync_warp();
    kv_.advance();
  }

  const DecodeParams& params_;
  DecodeSmem<kC>& smem_;
  tile::RingPosition<kC.slots()> kv_;
  tile::RingPosition<2> pieces_;
  ChunkWindow window_;
  // The 32 members from group_ on, one a lane.
  int group_ = 0;
  int group_first_unit_ = 0;
  DecodeMember held_;
  int held_units_ = 0;
  int through_ = 0;  ///< units of the group up to this lane's member
};

}  // namespace ks::fa3
