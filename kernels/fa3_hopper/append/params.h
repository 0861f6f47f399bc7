// What one launch of the append kernel is given: by value, in constant memory.
#pragma once

#include "kernels/attention/parts/schedule.cuh"
#include "kernels/attention/problem.h"

namespace ks::fa3::append {

/// Elements from batch to batch (or page to page), row to row, head to head.
struct Strides {
  int64_t batch;
  int64_t row;
  int64_t head;
};

/// What is known before the pointers are.
struct AppendTerms {
  attention::AttentionProblem problem;
  attention::TileOrder order;
  int new_keys;
  int rotary_style;  ///< as KS_ROTARY_*
  int rotary_dim;
  int64_t rotary_stride;  ///< from one position of the tables to the next
  int key_dim;
  int append_blocks;  ///< the first blocks of the grid write appended keys: one a member and kv head
  Strides query, key, value, new_key, new_value;
};

struct AppendParams : AppendTerms {
  const uint16_t* queries;  ///< all 16-bit elements, bfloat16 or half
  uint16_t* keys;
  uint16_t* values;
  const uint16_t* new_keys_in;
  const uint16_t* new_values_in;
  const uint16_t* cosines;
  const uint16_t* sines;
  const int32_t* leftpad;  ///< null: none
};

}  // namespace ks::fa3::append
