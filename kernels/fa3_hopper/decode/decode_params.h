// What one launch of the decode kernel is given: by value, in constant memory.
#pragma once

#include <cuda.h>

#include "kernels/fa3_hopper/decode/partition.h"

namespace ks::fa3 {

/// Bytes between the pages, keys and heads of an operand.
struct DecodeStrides {
  int64_t page;
  int64_t key;
  int64_t head;
};

/// The sharing-out if every member were as long as it may be: where to look up pages before the lengths are known.
struct DecodeGuess {
  DecodeShares shares;
  int tile_units;
  int origin;
};

/// What is known before the pointers are.
struct DecodeTerms {
  attention::AttentionProblem problem;
  int team;             ///< blocks of threads that do neighbouring heads together
  int team_tiles;       ///< team's tiles of a member: heads / team
  int few_workers;      ///< teams that make one block of threads a multiprocessor
  int most_workers;     ///< teams of the grid; lengths decide how many of them have work
  uint64_t key_policy;  ///< cache policy of keys and values
  int granule;          ///< keys that one box brings: what a page and a block have in common, or a block
  int granule_shift;    ///< its log2: it is a power of two
  bool gathers;         ///< pages are too small for boxes: rows are copied 16 bytes a lane
  int slot_granule;     ///< keys that lie together in a slot, slab by slab
  int page_shift;       ///< log2 of the page size, -1 if it is no power of two
  int origin_step;      ///< block 0 may start at any multiple of this key
  DecodeGuess guess;
  DecodeStrides key_strides;
  DecodeStrides value_strides;
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
  const void* key;        ///< as the gather reads them
  const void* value;
  const int32_t* leftpad;
  const float* key_descale;
  const float* value_descale;
  int32_t* arrivals;      ///< shared tiles: parts that are done, a counter a block of threads, zero before and after
  float* partial_output;  ///< [2 block + which][row][column], to be weighted; which: 0 a tile begun before, 1 its last
  float* partial_stats;   ///< [2 block + which][row]: maximum in base 2, and sum
};

}  // namespace ks::fa3
