// What follows the main loop of the MLA kernel: whole tiles are written, parts of tiles go to scratch memory and are
// summed by the last of them. See mla.cuh.
#pragma once

#include "kernels/fa3_hopper/mla/mla_attend.cuh"

namespace ks::fa3::mla {

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

}  // namespace ks::fa3::mla
