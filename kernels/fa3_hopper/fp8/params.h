// What one launch of the e4m3 kernel is given: by value, in constant memory.
#pragma once

#include <cuda.h>

#include "kernels/attention/parts/schedule.cuh"
#include "kernels/attention/problem.h"

namespace ks::fa3::fp8 {

/// What is known before the pointers are.
struct Fp8Terms {
  attention::AttentionProblem problem;
  attention::TileOrder order;
  int granule;      ///< keys that one box brings
  int origin_step;  ///< block 0 may start at any multiple of this key
  uint64_t key_policy;
  int query_bytes;  ///< of the boxes of Q
  int descale_batch_stride;
  int descale_head_stride;
  uint32_t ratio_reciprocal;  ///< floor(65536 / ratio) + 1: row / ratio by one multiply, for rows below 256
};

struct Fp8Params : Fp8Terms {
  CUtensorMap query_map;  ///< (column, head, row, member), box (128, ratio, positions a tile, 1)
  CUtensorMap key_map;    ///< (column, key, kv head, member or page), box (128, granule, 1, 1)
  CUtensorMap value_map;  ///< likewise
  attention::TileCounters* counters;
  const float* query_descale;  ///< a number each (member, kv head); null: 1
  const float* key_descale;
  const float* value_descale;
};

}  // namespace ks::fa3::fp8
