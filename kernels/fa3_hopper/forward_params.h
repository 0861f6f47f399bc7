// What one launch of the forward kernel is given: by value, in constant memory.
#pragma once

#include <cuda.h>

#include "kernels/attention/parts/schedule.cuh"
#include "kernels/attention/problem.h"

namespace ks::fa3 {

/// Bytes between the pages, keys and heads of an operand, and its columns.
struct CacheStrides {
  int64_t page_bytes;
  int64_t key_bytes;
  int64_t head_bytes;
  int columns;
};

/// What is known before the pointers are.
struct ForwardTerms {
  attention::AttentionProblem problem;
  attention::TileOrder order;
  int granule;      ///< keys that one box brings: the whole block, or what a page and a block have in common
  int origin_step;  ///< block 0 may start at any multiple of this key
  int page_shift;   ///< log2 of the page size, -1 if it is no power of two
  CacheStrides key_strides;
  CacheStrides value_strides;
  bool gathers;               ///< pages are too small for boxes: gather.cuh
  uint64_t key_policy;        ///< cache policy of keys and values
  bool stores_boxes;          ///< a warp's 16 rows are whole positions, and leave as boxes
  int query_bytes;            ///< bytes of the query boxes of a tile
  float scale_log2;           ///< what scores are multiplied with inside exp2: scale, or the cap, times log2(e)
  float cap_scale;            ///< soft cap: scale / cap
  uint32_t ratio_reciprocal;  ///< floor(65536 / ratio) + 1: row / ratio by one multiply, for rows below 256
};

struct ForwardParams : ForwardTerms {
  CUtensorMap query_map;   ///< (column, head, row, member), box (64, ratio, positions a tile, 1)
  CUtensorMap key_map;     ///< (column, key, kv head, member or page), box (64, granule, 1, 1)
  CUtensorMap value_map;   ///< likewise
  CUtensorMap output_map;  ///< (column, head, row, member), box (64, ratio, 16 / ratio, 1): a warp's rows
  const void* key;         ///< as the gather reads them, with bytes between pages, keys and heads
  const void* value;
  attention::TileCounters* counters;
  int32_t* arrivals;      ///< split tiles: parts that are done, a counter a tile, zero before and after
  float* partial_output;  ///< split tiles: [tile, split, row, value_dim], each part normalised by itself
  float* partial_lse;     ///< split tiles: [tile, split, row], base 2, -inf: the part saw no key
};

}  // namespace ks::fa3
