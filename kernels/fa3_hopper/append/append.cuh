// Attention over a cache to which the call first appends keys, with rotary position embedding and left padding; and
// anything else about a 16-bit cache that needs work on its elements rather than speed.
//
// 1. The algorithm is that of ../forward.cuh, one tile of 64 query rows a block. Appended keys never take the way
// through
//    the cache: every block that attends to them makes them (rotated and rounded) from the call's own tensors, and
//    blocks of their own write them to the cache. So no block waits for another, and a call is one kernel.
//
// 2. Who does what: blocks below append_blocks write the appended keys of one (member, kv head). In the others, the
// four
//    warps bring a block of keys and values with 16-byte copies in the background (or make it), kStages - 1 blocks
//    ahead, and multiply, as one warpgroup.
//
// 3. Budget: O value_dim/2 + S 32 + P 16 registers; shared memory Q + stages of K and V.
#pragma once

#include "kernels/attention/parts/mask.cuh"
#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/attention/parts/schedule.cuh"
#include "kernels/fa3_hopper/append/params.h"
#include "kernels/fa3_hopper/append/rotate.cuh"
#include "kernels/ptx/fence.cuh"
#include "kernels/tile/matmul.cuh"
#include "kernels/tile/smem_tile.cuh"

namespace ks::fa3::append {

using attention::BlockPlan;
using attention::KeyLayout;
using attention::Tile;
using tile::Element;

// 4. The configuration.
inline constexpr int kRows = 64;
inline constexpr int kBlockKeys = 64;
inline constexpr int kThreads = 128;

constexpr int stages_of(int dim) {
  return dim <= 128 ? 3 : 2;
}

// 5. Shared memory.
template <int kDim>
struct alignas(1024) Smem {
  using Block = tile::SmemTile<kBlockKeys, kDim>;  // Q has as many rows
  unsigned char sQ[Block::kBytes];
  unsigned char sK[stages_of(kDim)][Block::kBytes];
  unsigned char sV[stages_of(kDim)][Block::kBytes];
};

template <Element kType, int kDim>
struct Worker {
  static constexpr int kChunks = kDim / 8;
  static constexpr int kStages = stages_of(kDim);
  static constexpr int kSteps = kBlockKeys / 16;
  using Block = typename Smem<kDim>::Block;

  const AppendParams& params;
  Smem<kDim>& smem;
  const Tile tile;
  const int before;   ///< keys in the cache before this call
  const int padding;  ///< keys that are none
  const int lane;
  const int warp_row;

  float O[kDim / 2];
  attention::RowSoftmax softmax;

  /// The row of a key or value in the cache.
  __device__ __forceinline__ int64_t cache_row(const Strides& strides, int key) const {
    const attention::AttentionProblem& problem = params.problem;
    const int64_t head = tile.kv_head * strides.head;
    if (problem.key_layout == KeyLayout::kPaged) {
      const int entry = key / problem.page_size;
      const int page = ptx::ld_global_nc(problem.page_table + int64_t{tile.member} * problem.page_table_stride + entry);
      return page * strides.batch + (key - entry * problem.page_size) * strides.row + head;
    }
    return (problem.key_layout == KeyLayout::kPacked ? 0 : tile.member * strides.batch) +
           (int64_t{tile.key_base} + key) * strides.row + head;
  }
  __device__ __forceinline__ const uint16_t* new_row(const uint16_t* base, const Strides& strides, int key) const {
    return base + tile.member * strides.batch + (key - before) * strides.row + tile.kv_head * strides.head;
  }

  /// This thread's chunks of a block of keys and values: copied from the cache, made anew, or zero.
  __device__ __forceinline__ void bring_block(int first_key, int stage) const {
    const uint32_t keys = ptx::cvta_shared(smem.sK[stage]);
    const uint32_t values = ptx::cvta_shared(smem.sV[stage]);
#pragma unroll 2
    for (int i = ptx::thread_index(); i < kBlockKeys * kChunks; i += kThreads) {
      const int row = i / kChunks;
      const int chunk = i % kChunks;
      const int key = first_key + row;
      const uint32_t to_key = Block::chunk_address(keys, row, chunk);
      const uint32_t to_value = Block::chunk_address(values, row, chunk);
      const bool has_key = key >= padding && key < tile.keys && 8 * chunk < params.key_dim;
      const bool has_value = key >= padding && key < tile.keys && 8 * chunk < params.problem.value_dim;
      if (key < before) {
        ptx::cp_async_16(to_key, has_key ? params.keys + cache_row(params.key, key) + 8 * chunk : params.queries,
                         has_key ? 16 : 0);
        ptx::cp_async_16(to_value,
                         has_value ? params.values + cache_row(params.value, key) + 8 * chunk : params.queries,
                         has_value ? 16 : 0);
        continue;
      }
      const uint4 nothing = {0, 0, 0, 0};
      ptx::st_shared_v4(
          to_key, has_key ? rotated_chunk<kType>(params, new_row(params.new_keys_in, params.new_key, key), chunk, key)
                          : nothing);
      ptx::st_shared_v4(
          to_value, has_value ? load_eight(new_row(params.new_values_in, params.new_value, key) + 8 * chunk) : nothing);
    }
    ptx::cp_async_commit_group();
  }

  struct RowPlace {
    bool exists;
    int position;
    int head;
  };
  __device__ __forceinline__ RowPlace place_of(int row) const {
    const int ratio = params.problem.ratio;
    const int step = row / ratio;
    const int position = tile.first_position + step;
    return {row < params.order.positions_per_tile * ratio && position < tile.rows, position,
            tile.group * ratio + row - step * ratio};
  }

  /// The rotated query rows; rows that do not exist are zero.
  __device__ __forceinline__ void bring_query() const {
    const uint32_t rows = ptx::cvta_shared(smem.sQ);
    for (int i = ptx::thread_index(); i < kRows * kChunks; i += kThreads) {
      const int chunk = i % kChunks;
      const RowPlace place = place_of(i / kChunks);
      uint4 words = {0, 0, 0, 0};
      if (place.exists && 8 * chunk < params.key_dim) {
        const uint16_t* row = params.queries + (params.problem.rows_packed ? 0 : tile.member * params.query.batch) +
                              (int64_t{tile.row_base} + place.position) * params.query.row +
                              place.head * params.query.head;
        words = rotated_chunk<kType>(params, row, chunk, before + place.position);
      }
      ptx::st_shared_v4(Block::chunk_address(rows, i / kChunks, chunk), words);
    }
  }

  /// Hides the scores of keys that a row may not see, padding among them.
  __device__ __forceinline__ void hide(float (&S)[kBlockKeys / 2], int first_key) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int position = tile.first_position + (warp_row + lane / 4 + 8 * r) / params.problem.ratio;
      attention::KeyRange visible = attention::visible_keys(position, tile.rows, tile.keys, params.problem.window_left,
                                                            params.problem.window_right);
      visible.begin = attention::larger(visible.begin, padding);
#pragma unroll
      for (int i = 2 * r; i < kBlockKeys / 2; i += 4) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = first_key + 2 * i - 4 * r + 2 * (lane % 4) + e;
          if (key < visible.begin || key >= visible.end) S[i + e] = -INFINITY;
        }
      }
    }
  }

  /// Steps (1) to (5) on a block that has landed.
  __device__ __forceinline__ void attend_block(int first_key, int stage, float scale_log2) {
    float S[kBlockKeys / 2];
    const uint64_t queries = Block::k_major(ptx::cvta_shared(smem.sQ));
    const uint64_t keys = Block::k_major(ptx::cvta_shared(smem.sK[stage]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      tile::matmul_shared<kType>(S, queries + Block::k_major_step(step), keys + Block::k_major_step(step), step > 0);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
    tile::pin(S);
    if (params.problem.softcap > 0.0f) {
      const float cap_scale = params.problem.scale / params.problem.softcap;
#pragma unroll
      for (int i = 0; i < kBlockKeys / 2; ++i) S[i] = ptx::tanh_approx(S[i] * cap_scale);
    }
    hide(S, first_key);
    softmax.update(S, scale_log2);
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) O[i] *= softmax.alpha[(i / 2) % 2];
    uint32_t P[kSteps][4];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) P[step][i] = tile::pack<kType>(S[8 * step + 2 * i], S[8 * step + 2 * i + 1]);
    }
    const uint64_t values = Block::mn_major(ptx::cvta_shared(smem.sV[stage]));
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      tile::matmul_registers<kType>(O, P[step], values + Block::mn_major_step(step), 1);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
    tile::pin(O);
  }

  /// O / l and LSE to global memory.
  __device__ __forceinline__ void finish(float scale_log2) const {
    const attention::AttentionProblem& problem = params.problem;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const RowPlace place = place_of(warp_row + lane / 4 + 8 * r);
      const float total = attention::quad_sum(softmax.l[r]);
      attention::RowFinish done;
      if (problem.sinks != nullptr) {
        const float sink = place.exists ? tile::load_float<kType>(problem.sinks, place.head) : 0.0f;
        done = attention::finish_row_with_sink(softmax.m[r], total, scale_log2, sink);
      } else {
        done = attention::finish_row(softmax.m[r], total, scale_log2);
      }
      if (!place.exists) continue;
      const int64_t row = int64_t{tile.row_base} + place.position;
      if (lane % 4 == 0) {
        problem.lse[(problem.rows_packed ? 0 : tile.member * problem.lse_batch_stride) + row * problem.lse_row_stride +
                    place.head * problem.lse_head_stride] = done.lse;
      }
      uint16_t* output = static_cast<uint16_t*>(problem.output) +
                         (problem.rows_packed ? 0 : tile.member * problem.output_batch_stride) +
                         row * problem.output_row_stride + place.head * problem.output_head_stride;
#pragma unroll
      for (int j = 0; j < kDim / 8; ++j) {
        const int column = 8 * j + 2 * (lane % 4);
        if (column >= problem.value_dim) continue;
        *reinterpret_cast<uint32_t*>(output + column) =
            tile::pack<kType>(O[4 * j + 2 * r] * done.factor, O[4 * j + 2 * r + 1] * done.factor);
      }
    }
  }

  __device__ __forceinline__ void attend() {
    const attention::AttentionProblem& problem = params.problem;
    const float scale_log2 = (problem.softcap > 0.0f ? problem.softcap : problem.scale) * attention::kLog2E;
    const int last = attention::smaller(tile.first_position + params.order.positions_per_tile, tile.rows) - 1;
    const BlockPlan plan = attention::plan_blocks(tile.first_position, last, tile.rows, tile.keys, problem.window_left,
                                                  problem.window_right, kBlockKeys, 1);
    const int skipped = attention::larger(padding - plan.origin, 0) / kBlockKeys;  // blocks of padding alone
    const int begin = attention::smaller(skipped, plan.end);
    softmax = attention::RowSoftmax{};
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) O[i] = 0.0f;
    bring_query();
#pragma unroll 1
    for (int ahead = 0; ahead < kStages - 1; ++ahead) {
      if (begin + ahead < plan.end) {
        bring_block(plan.origin + (begin + ahead) * kBlockKeys, ahead);
      } else {
        ptx::cp_async_commit_group();
      }
    }
    int stage = 0;
#pragma unroll 1
    for (int block = begin; block < plan.end; ++block) {
      ptx::cp_async_wait_group<kStages - 2>();
      ptx::fence_proxy_async_shared();
      ptx::sync_block();  // the block is here, and the stage before it is read
      const int next = block + kStages - 1;
      if (next < plan.end) {
        bring_block(plan.origin + next * kBlockKeys, stage == 0 ? kStages - 1 : stage - 1);
      } else {
        ptx::cp_async_commit_group();
      }
      attend_block(plan.origin + block * kBlockKeys, stage, scale_log2);
      if (++stage == kStages) stage = 0;
    }
    finish(scale_log2);
  }

  /// Writes the appended keys and values of this (member, kv head) to the cache.
  __device__ __forceinline__ void append() const {
    const int chunks = attention::larger(params.key_dim, params.problem.value_dim) / 8;
    for (int i = ptx::thread_index(); i < params.new_keys * chunks; i += kThreads) {
      const int key = before + i / chunks;
      const int chunk = i % chunks;
      if (8 * chunk < params.key_dim) {
        *reinterpret_cast<uint4*>(params.keys + cache_row(params.key, key) + 8 * chunk) =
            rotated_chunk<kType>(params, new_row(params.new_keys_in, params.new_key, key), chunk, key);
      }
      if (8 * chunk < params.problem.value_dim) {
        *reinterpret_cast<uint4*>(params.values + cache_row(params.value, key) + 8 * chunk) =
            load_eight(new_row(params.new_values_in, params.new_value, key) + 8 * chunk);
      }
    }
  }
};

// 6. The entry.
template <Element kType, int kDim>
__global__ void __launch_bounds__(kThreads, kDim <= 128 ? 2 : 1)
    append_forward_sm90(const __grid_constant__ AppendParams params) {
  extern __shared__ unsigned char memory[];
  static_assert(sizeof(Smem<kDim>) <= 232448 / (kDim <= 128 ? 2 : 1));
  Smem<kDim>& smem = *reinterpret_cast<Smem<kDim>*>(memory);
  Tile tile;
  if (ptx::block_index() < params.append_blocks) {
    const int member = ptx::block_index() / params.problem.kv_heads;
    tile = Tile{member};
    tile.kv_head = ptx::block_index() - member * params.problem.kv_heads;
    tile.keys = attention::key_count(params.problem, member);
  } else {
    attention::TileWalk walk(params.problem, params.order);
    tile = walk.at(ptx::block_index() - params.append_blocks);
    if (tile.member < 0) return;
  }
  const int before = tile.keys;
  tile.keys += params.new_keys;
  const int padding = params.leftpad != nullptr ? ptx::ld_global_nc(params.leftpad + tile.member) : 0;
  Worker<kType, kDim> worker{params, smem, tile, before, padding, ptx::lane_index(), ptx::warp_index() * 16};
  if (ptx::block_index() < params.append_blocks) {
    worker.append();
  } else {
    worker.attend();
  }
}

}  // namespace ks::fa3::append
