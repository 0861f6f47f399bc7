// How the keys of all members are shared out among the workers of a decode call: plain arithmetic for host and device.
//
// A tile is a (member, kv head) pair with all its query rows; its visible keys are cut into blocks. All blocks of all
// tiles, member by member and head by head, are numbered as units; a tile without visible keys still counts one, since
// its rows must be written. Worker w of W does units w T / W .. (w + 1) T / W - 1 of T: no two differ by more than one
// unit. A tile that several workers share is done in parts, one a worker, numbered in order.
#pragma once

#include <cstdint>

#include "kernels/attention/parts/visible_keys.h"

namespace ks::fa3 {

/// The keys that the rows of a tile see, in blocks.
struct DecodeBlocks {
  int origin;  ///< first key of block 0
  int begin;   ///< keys begin .. end-1 are seen by some row
  int end;
  int count;        ///< blocks
  int first_plain;  ///< blocks first_plain .. end_plain-1 are seen in full by every row
  int end_plain;
};

/// Block 0 starts at the left edge, moved back to a multiple of `step` keys.
KS_HOST_DEVICE DecodeBlocks decode_blocks(int rows, int keys, int leftpad, int window_left, int window_right, int block,
                                          int step) {
  const attention::KeyRange first = attention::visible_keys(0, rows, keys, window_left, window_right);
  const attention::KeyRange last = attention::visible_keys(rows - 1, rows, keys, window_left, window_right);
  DecodeBlocks blocks;
  blocks.begin = attention::larger(first.begin, leftpad);
  blocks.end = last.end;
  blocks.origin = blocks.begin - blocks.begin % step;
  if (blocks.end <= blocks.begin) return {0, 0, 0, 0, 0, 0};
  blocks.count = (blocks.end - blocks.origin + block - 1) / block;
  const int from = attention::larger(last.begin, leftpad) - blocks.origin;
  blocks.first_plain = (from + block - 1) / block;
  blocks.end_plain = attention::larger(first.end - blocks.origin, 0) / block;
  return blocks;
}

/// Units of one tile of a member with so many rows and blocks.
KS_HOST_DEVICE int tile_units(int rows, int blocks) {
  return rows > 0 ? attention::larger(blocks, 1) : 0;
}

/// First unit of a worker (and, for `worker + 1`, one past its last).
KS_HOST_DEVICE int first_unit(int worker, int workers, int units) {
  return static_cast<int>(int64_t{worker} * units / workers);
}

/// The worker that does a unit.
KS_HOST_DEVICE int worker_of(int unit, int workers, int units) {
  return static_cast<int>(((int64_t{unit} + 1) * workers - 1) / units);
}

/// How many of `most` workers share the units: one unit each where there are few; one worker a multiprocessor as long
/// as that leaves each only a few units, since more parts make longer sums; all of them beyond.
KS_HOST_DEVICE int choose_workers(int units, int multiprocessors, int most) {
  constexpr int kFewUnits = 16;
  const int wanted = units <= kFewUnits * multiprocessors ? multiprocessors : most;
  if (units >= wanted) return attention::smaller(wanted, most);
  return attention::larger(units, 1);
}

}  // namespace ks::fa3
