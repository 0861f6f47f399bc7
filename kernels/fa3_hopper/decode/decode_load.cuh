// The load warp of a decode block: finds the worker's share of all units from the lengths in device memory, publishes
// it piece by piece, and brings queries, keys and values.
//
// What it waits for, it asks for early: lengths first of all; the pages where it begins if all members are as long as
// they may be, before it knows the lengths; the next piece and its pages while it loads this one.
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
      : params_(params), smem_(smem), is_paged_(params.problem.key_layout == attention::KeyLayout::kPaged) {}

  __device__ __forceinline__ void run() {
    held_ = member_at(attention::smaller(ptx::lane_index(), params_.problem.batch - 1));
    if (is_paged_) guess_window();
    if (ptx::elect_one()) {
      ptx::prefetch_tensormap(&params_.query_map);
      ptx::prefetch_tensormap(&params_.key_map);
      ptx::prefetch_tensormap(&params_.value_map);
    }
    ptx::sync_block();  // the barriers are made
    if (as_guessed()) {
      take_guess();
    } else {
      take_group(ptx::lane_index());
      shares_ = share_units(count_units(), params_.few_workers, params_.most_workers);
    }
    const int worker = ptx::block_index() / params_.team;
    const bool works = worker < shares_.workers && shares_.units > 0;
    end_ = works ? shares_.first_unit(worker + 1) : 0;
    DecodePiece piece;
    piece.member = -1;
    if (works) piece = piece_at(shares_.first_unit(worker));
    if (works && is_paged_) find_window(piece);
#pragma unroll 1
    while (piece.member >= 0) {
      publish(piece);
      piece = load_blocks(piece);
    }
    publish(piece);
  }

 private:
  using Config = DecodeConfig;

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

  /// Whether all members are as long as they may be: then the host has shared the units out.
  __device__ __forceinline__ bool as_guessed() const {
    const attention::AttentionProblem& problem = params_.problem;
    if (problem.rows_packed || problem.key_layout == attention::KeyLayout::kPacked || params_.leftpad != nullptr ||
        problem.batch > 32) {
      return false;
    }
    return !ptx::any(held_.keys != problem.max_keys);
  }
  __device__ __forceinline__ void take_guess() {
    const int lane = ptx::lane_index();
    shares_ = params_.guess.shares;
    held_units_ = lane < params_.problem.batch ? params_.guess.tile_units : 0;
    through_ = attention::smaller(lane + 1, params_.problem.batch) * params_.guess.tile_units * params_.team_tiles;
  }

  /// All units of the call, the first 32 members' of which are in the lanes.
  __device__ __forceinline__ int count_units() {
    const int batch = params_.problem.batch;
    int own = held_units_;
#pragma unroll 4
    for (int base = 32; base < batch; base += 32) {
      const int member = base + ptx::lane_index();
      const DecodeMember m = member_at(attention::smaller(member, batch - 1));
      own += member < batch ? tile_units(m.rows, blocks_of(m).count) : 0;
    }
    for (int mask = 16; mask > 0; mask /= 2) own += ptx::shfl_xor(own, mask);
    return own * params_.team_tiles;
  }

  /// Counts the units of the held members; `member` is this lane's, perhaps past the last.
  __device__ __forceinline__ void take_group(int member) {
    held_units_ = member < params_.problem.batch ? tile_units(held_.rows, blocks_of(held_).count) : 0;
    through_ = held_units_;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int below = ptx::shfl_up(through_, distance);
      if (ptx::lane_index() >= distance) through_ += below;
    }
    through_ *= params_.team_tiles;
  }

  /// The piece that starts at a unit of this worker's; no piece past its last.
  __device__ __forceinline__ DecodePiece piece_at(int unit) {
    DecodePiece piece;
    piece.member = -1;
    if (unit >= end_) return piece;
    uint32_t past = ptx::ballot(group_first_unit_ + through_ > unit);
    while (past == 0) {
      group_first_unit_ += ptx::shfl(through_, 31);
      group_ += 32;
      const int member = group_ + ptx::lane_index();
      held_ = member_at(attention::smaller(member, params_.problem.batch - 1));
      take_group(member);
      past = ptx::ballot(group_first_unit_ + through_ > unit);
    }
    const int lane = ptx::find_first_set(past) - 1;
    DecodeMember m;
    m.rows = ptx::shfl(held_.rows, lane);
    m.row_base = ptx::shfl(held_.row_base, lane);
    m.keys = ptx::shfl(held_.keys, lane);
    m.key_base = ptx::shfl(held_.key_base, lane);
    m.leftpad = ptx::shfl(held_.leftpad, lane);
    const int tile_units = ptx::shfl(held_units_, lane);
    const int member_first = group_first_unit_ + ptx::shfl(through_, lane) - tile_units * params_.team_tiles;
    piece.member = group_ + lane;
    const int team_tile =
        static_cast<int>(static_cast<uint32_t>(unit - member_first) / static_cast<uint32_t>(tile_units));
    piece.kv_head = team_tile * params_.team + ptx::block_index() % params_.team;
    piece.rows = m.rows;
    piece.row_base = m.row_base;
    piece.keys = m.keys;
    piece.key_base = m.key_base;
    piece.leftpad = m.leftpad;
    piece.blocks = blocks_of(m);
    piece.tile_unit = member_first + team_tile * tile_units;
    piece.tile_units = tile_units;
    piece.shares = shares_;
    piece.first_block = unit - piece.tile_unit;
    next_unit_ = attention::smaller(end_, piece.tile_unit + tile_units);
    piece.end_block = attention::smaller(next_unit_ - piece.tile_unit, piece.blocks.count);
    return piece;
  }

  /// Hands a piece to the compute warps, and brings its query.
  __device__ __forceinline__ void publish(const DecodePiece& piece) {
    if (ptx::elect_one()) {
      smem_.pieces.wait_empty(pieces_);
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
    const int key = chunk << params_.granule_shift;
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

  __device__ __forceinline__ void guess_window() {
    const DecodeGuess& guess = params_.guess;
    const int worker = ptx::block_index() / params_.team;
    if (worker >= guess.shares.workers) return;
    const int unit = guess.shares.first_unit(worker);
    const int tile = unit / guess.tile_units;
    const int first_key = guess.origin + (unit - tile * guess.tile_units) * Config::kBlockKeys;
    window_ = window_at(tile / params_.team_tiles, first_key >> params_.granule_shift);
  }

  /// Asks for the pages of a piece's first chunks, unless it has them.
  __device__ __forceinline__ void find_window(const DecodePiece& piece) {
    const int chunk = (piece.blocks.origin + piece.first_block * Config::kBlockKeys) >> params_.granule_shift;
    if (window_.member != piece.member || window_.chunk != chunk) window_ = window_at(piece.member, chunk);
  }

  /// Puts a window where the lane that issues boxes reads it.
  __device__ __forceinline__ void write_places(const ChunkWindow& window) {
    ptx::sync_warp();
    smem_.places[ptx::lane_index()] = window.own[0];
    smem_.places[ptx::lane_index() + 32] = window.own[1];
    ptx::sync_warp();
  }

  /// All blocks of a piece, keys and values in turns. Returns the next piece, whose pages are then on their way.
  __device__ __forceinline__ DecodePiece load_blocks(const DecodePiece& piece) {
    const int block_chunks = Config::kBlockKeys >> params_.granule_shift;
    int first_key = piece.blocks.origin + piece.first_block * Config::kBlockKeys;
    int at = 0;  // of the block's first chunk in the window
    const int first_chunk = window_.chunk;
    int window_chunk = first_chunk;
    if (is_paged_) write_places(window_);
    DecodePiece next;
    ChunkWindow ahead;
    const bool goes_on = is_paged_ && piece.end_block - piece.first_block > 64 / block_chunks;
    if (goes_on) ahead = window_at(piece.member, window_chunk + 64);
    if (piece.first_block >= piece.end_block) {
      next = piece_at(next_unit_);
      if (is_paged_ && next.member >= 0) find_window(next);
      return next;
    }
#pragma unroll 1
    for (int block = piece.first_block; block < piece.end_block; ++block) {
      if (goes_on && at == 64) {
        write_places(ahead);
        window_chunk += 64;
        ahead = window_at(piece.member, window_chunk + 64);
        at = 0;
      }
      const int wanted = (piece.blocks.end - first_key + params_.granule - 1) >> params_.granule_shift;
      issue_block(piece, first_key, at, attention::smaller(block_chunks, wanted));
      if (block == piece.first_block) {
        next = piece_at(next_unit_);
        if (is_paged_ && next.member >= 0) find_window(next);
      }
      first_key += Config::kBlockKeys;
      at += block_chunks;
    }
    return next;
  }

  /// `chunks` boxes of keys, and as many of values, into the next two slots. Chunks past the last visible key stay as
  /// they are: their scores are masked, their values never used. One lane does it all: boxes that different lanes issue
  /// cost several times as much.
  __device__ __forceinline__ void issue_block(const DecodePiece& piece, int first_key, int at, int chunks) {
    if (params_.gathers) {
      tile::RingPosition<kC.slots()> slot = kv_;
      const int keys = piece.blocks.end - first_key;
      gather_half(params_.key, params_.key_strides, slot, piece.kv_head, at, keys);
      slot.advance();
      gather_half(params_.value, params_.value_strides, slot, piece.kv_head, at, keys);
    } else if (ptx::elect_one()) {
      tile::RingPosition<kC.slots()> slot = kv_;
      issue_half(&params_.key_map, slot, piece, first_key, at, chunks);
      slot.advance();
      issue_half(&params_.value_map, slot, piece, first_key, at, chunks);
    }
    ptx::sync_warp();
    kv_.advance();
    kv_.advance();
  }

  __device__ __forceinline__ void issue_half(const CUtensorMap* map, const tile::RingPosition<kC.slots()>& slot,
                                             const DecodePiece& piece, int first_key, int at, int chunks) {
    const int chunk_bytes = params_.granule * kC.row_bytes();
    const uint32_t to = ptx::cvta_shared(smem_.sKV[slot.slot]);
    const uint32_t barrier = smem_.kv.full(slot.slot);
    smem_.kv.wait_empty(slot);
    ptx::mbarrier_arrive_expect_tx(barrier, chunks * chunk_bytes);
    if (!is_paged_) {
      const int member = params_.problem.key_layout == attention::KeyLayout::kPacked ? 0 : piece.member;
      ptx::cp_async_bulk_tensor_5d_load(to, map, 0, piece.key_base + first_key, 0, piece.kv_head, member, barrier,
                                        params_.key_policy);
      return;
    }
#pragma unroll 1
    for (int first = 0; first < chunks; first += 4) {
      ChunkPlace place[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) place[i] = smem_.places[(at + first + i) % 64];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (first + i >= chunks) break;
        ptx::cp_async_bulk_tensor_5d_load(to + (first + i) * chunk_bytes, map, 0, place[i].row, 0, piece.kv_head,
                                          place[i].page, barrier, params_.key_policy);
      }
    }
  }

  /// The same from pages too small for boxes: 16 bytes a lane at a time, into the same places. The barrier gets one
  /// arrival a lane once its bytes have landed.
  __device__ __forceinline__ void gather_half(const void* base, const DecodeStrides& strides,
                                              const tile::RingPosition<kC.slots()>& slot, int kv_head, int at,
                                              int keys) {
    constexpr int kChunks = kC.row_bytes() / 16;
    constexpr int kSlab = kC.slab_bytes();
    const char* head = static_cast<const char*>(base) + kv_head * strides.head;
    const uint32_t to = ptx::cvta_shared(smem_.sKV[slot.slot]);
    smem_.kv.wait_empty(slot);
#pragma unroll 8
    for (int i = 0; i < kChunks * Config::kBlockKeys / 32; ++i) {
      const int key = (i * 32 + ptx::lane_index()) / kChunks;
      const int in_row = (i * 32 + ptx::lane_index()) % kChunks * 16;
      const ChunkPlace place = smem_.places[(at + (key >> params_.granule_shift)) % 64];
      const char* from =
          head + place.page * strides.page + (place.row + (key & (params_.granule - 1))) * strides.key + in_row;
      const int offset = in_row / kSlab * (Config::kBlockKeys * kSlab) + key * kSlab + in_row % kSlab;
      if (key < keys) ptx::cp_async_16(to + swizzled(offset, kSlab), from, 16);
    }
    ptx::cp_async_mbarrier_arrive_noinc(smem_.kv.full(slot.slot));
  }

  const DecodeParams& params_;
  DecodeSmem<kC>& smem_;
  const bool is_paged_;
  tile::RingPosition<kC.slots()> kv_;
  tile::RingPosition<2> pieces_;
  ChunkWindow window_;
  DecodeShares shares_;
  int end_ = 0;        ///< one past this worker's last unit
  int next_unit_ = 0;  ///< after the last piece that was made
  // The 32 members from group_ on, one a lane.
  int group_ = 0;
  int group_first_unit_ = 0;
  DecodeMember held_;
  int held_units_ = 0;  ///< of one tile of the lane's member
  int through_ = 0;     ///< units of the group up to this lane's member
};

}  // namespace ks::fa3
