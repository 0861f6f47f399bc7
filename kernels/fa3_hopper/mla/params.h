// What one launch of the MLA kernel is given: by value, in constant memory.
#pragma once

#include <cuda.h>

#include "kernels/attention/problem.h"

namespace ks::fa3::mla {

/// What is known before the pointers are.
struct MlaTerms {
  attention::AttentionProblem problem;
  int positions_per_tile;  ///< query positions of a tile; times the packed heads: rows used, at most 64
  int groups;              ///< packed head groups: query heads / ratio
  int granule;             ///< keys that one box brings
  int workers;             ///< blocks, or clusters of two, among which the work is shared out
  int sum_cost;            ///< of a part's partial result, in sixteenths of a key block
  int query_bytes;         ///< of the boxes of Q
  uint64_t key_policy;
  float scale_log2;
};

struct MlaParams : MlaTerms {
  CUtensorMap latent_map;  ///< (column, head, row, member), the first 512 columns of Q: box (64, ratio, positions, 1)
  CUtensorMap rope_map;    ///< likewise the last 64
  CUtensorMap key_map;     ///< (column, key, kv head, member or page): box (64, granule, 1, 1)
  int32_t* arrivals;       ///< parts that are done, a counter a worker and block of its cluster; zero before and after
  float* partial_output;   ///< [worker, block of the cluster, 2][register quad][thread]: O / l of a part, in registers'
                           ///< order
  float* partial_lse;      ///< [worker, block of the cluster, 2][row], base 2
};

}  // namespace ks::fa3::mla
