// Which keys a query position, and a tile of positions, may see; plain arithmetic for host and device.
#pragma once

#include "kernels/attention/problem.h"

namespace ks::attention {

/// Keys begin .. end-1; empty if end <= begin.
struct KeyRange {
  int begin;
  int end;
};

KS_HOST_DEVICE int smaller(int a, int b) {
  return a < b ? a : b;
}
KS_HOST_DEVICE int larger(int a, int b) {
  return a > b ? a : b;
}

/// Keys visible to one position of a member with `rows` positions and `keys` keys (bottom-right aligned).
KS_HOST_DEVICE KeyRange visible_keys(int position, int rows, int keys, int window_left, int window_right) {
  const int diagonal = position + keys - rows;
  return {larger(0, diagonal - window_left), smaller(keys, diagonal + window_right + 1)};
}

/// The key blocks of a tile of positions first .. last, and which of them need a mask.
struct BlockPlan {
  int origin;  ///< first key of block 0
  int begin;   ///< blocks begin .. end-1 are to be done; none: no key is visible
  int end;
  int first_plain;  ///< blocks first_plain .. end_plain-1 are visible to every position of the tile
  int end_plain;
};

/// Cuts the keys visible to positions first .. last into blocks of `block` keys. Block 0 starts at the left edge, moved
/// back to a multiple of `granule` (keys that are loaded together).
KS_HOST_DEVICE BlockPlan plan_blocks(int first, int last, int rows, int keys, int window_left, int window_right,
                                     int block, int granule) {
  const KeyRange widest_left = visible_keys(first, rows, keys, window_left, window_right);
  const KeyRange widest_right = visible_keys(last, rows, keys, window_left, window_right);
  const int begin = widest_left.begin;
  const int end = widest_right.end;
  if (end <= begin) return {0, 0, 0, 0, 0};
  const int origin = begin - begin % granule;
  const int count = (end - origin + block - 1) / block;
  const int first_plain = (larger(widest_right.begin - origin, 0) + block - 1) / block;
  const int end_plain = larger(widest_left.end - origin, 0) / block;
  return {origin, 0, count, first_plain, end_plain};
}

/// Part `split` of `splits` of a plan's blocks; parts differ by one block at most, and may be empty.
KS_HOST_DEVICE BlockPlan part_of(BlockPlan plan, int split, int splits) {
  const int count = plan.end;
  plan.begin = count * split / splits;
  plan.end = count * (split + 1) / splits;
  return plan;
}

}  // namespace ks::attention
