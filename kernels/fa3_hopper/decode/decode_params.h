// What one launch of the decode kernel is given: by value, in constant memory.
#pragma once

#include <cuda.h>

#include "kernels/attention/problem.h"

namespace ks::fa3 {

/// What is known before the pointers are.
struct DecodeTerms {
  attention::AttentionProblem problem;
  int multiprocessors;
  int most_workers;           ///< blocks of the grid; lengths decide how many of them have work
  int granule;                ///< keys that one box brings: what a page and a block have in common, or a block
  int page_shift;             ///< log2 of the page size, -1 if it is no power of two
  int origin_step;            ///< block 0 may start at any multiple of this key
  int query_bytes;            ///< bytes of the query box of a tile
  uint32_t ratio_reciprocal;  ///< floor(65536 / ratio) + 1: row / ratio by one multiply, for rows below 256
  float scale_log2;           ///< what scores are multiplied with inside exp2: scale, or the cap, times log2(e)
  float cap_scale;            ///< soft cap: scale / cap; 0: none
  bool has_descale;
  int descale_batch_stride, descale_head_stride;
};

struct DecodeParams : DecodeTerms {
  CUtensorMap query_map;  ///< (column of a slab, head, row, slab, member), box: all rows of a tile
  CUtensorMap key_map;    ///< (column of a slab, key, slab, kv head, member or page), box: granule keys of one head
  CUtensorMap value_map;  ///< likewise
  const int32_t* leftpad;
  const float* key_descale;
  const float* value_descale;
  int32_t* arrivals;      ///< shared tiles: parts that are done, a counter a worker, zero before and after
  float* partial_output;  ///< [2 worker + which][row][column], to be weighted; which: 0 a tile begun before, 1 its last
  float* partial_stats;   ///< [2 worker + which][row]: maximum in base 2, and sum
};

}  // namespace ks::fa3
