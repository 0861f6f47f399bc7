// What an attention call asks for, as the kernels need it: plain values and device pointers, no policy.
//
// Rows are tiled per (member, kv head): the `ratio` query heads of a kv head are packed into the rows of a tile,
// position by position, so that row r of a tile is position r / ratio of the tile and head r % ratio of the group.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define KS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define KS_HOST_DEVICE inline
#endif

namespace ks::attention {

/// A window wide enough never to hide a key; far from overflow when positions are added.
inline constexpr int kUnlimited = 1 << 30;

/// How a member's keys are found.
enum class KeyLayout : int { kDense, kPacked, kCache, kPaged };

struct AttentionProblem {
  int batch;  ///< members
  int kv_heads;
  int ratio;     ///< query heads a kv head
  int max_rows;  ///< query positions of the longest member
  int max_keys;
  int value_dim;    ///< columns of O that exist
  int window_left;  ///< keys visible before the diagonal, kUnlimited: all
  int window_right;
  bool rows_packed;
  KeyLayout key_layout;
  int page_size;
  int page_table_stride;
  float scale;    ///< of the dot product
  float softcap;  ///< 0: none

  const int32_t* cu_rows;
  const int32_t* cu_keys;
  const int32_t* key_lengths;
  const int32_t* page_table;
  const void* sinks;  ///< one logit a query head, in the query's type; null: none
  void* output;
  float* lse;
  int64_t output_batch_stride, output_row_stride, output_head_stride;
  int64_t lse_batch_stride, lse_row_stride, lse_head_stride;
};

}  // namespace ks::attention
