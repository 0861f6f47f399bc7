// How the keys of all members are shared out among the workers of a decode call: plain arithmetic for host and device.
//
// A tile is a (member, kv head) pair with all its query rows; its visible keys are cut into blocks. Blocks of threads
// work in teams: the members of a team do the same keys of neighbouring heads at about the same time, because these lie
// side by side in memory, and pages of it are opened once. So a team's tile is `team` tiles, head by head. All blocks
// of all teams' tiles, member by member and heads by heads, are numbered as units; a tile without visible keys still
// counts one, since its rows must be written. Every worker (team) does a run of units; no two differ by more than one
// unit. A tile that several workers share is done in parts, one a worker, numbered in order.
#pragma once

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

/// Block 0 starts at the left edge, moved back to a multiple of `step` keys, a power of two.
KS_HOST_DEVICE DecodeBlocks decode_blocks(int rows, int keys, int leftpad, int window_left, int window_right, int block,
                                          int step) {
  const attention::KeyRange first = attention::visible_keys(0, rows, keys, window_left, window_right);
  const attention::KeyRange last = attention::visible_keys(rows - 1, rows, keys, window_left, window_right);
  DecodeBlocks blocks;
  blocks.begin = attention::larger(first.begin, leftpad);
  blocks.end = last.end;
  blocks.origin = blocks.begin & -step;
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

/// The largest number of neighbouring heads, of at most 2 KB a key, that leaves hardly a place idle.
KS_HOST_DEVICE int choose_team(int heads, int head_bytes, int places) {
  int best = 1;
  for (int team = 2; team <= heads && team * head_bytes <= 2048; ++team) {
    if (heads % team == 0 && places / team * team * 32 >= places * 31) best = team;
  }
  return best;
}

/// How many of `most` workers share the units: one unit each where there are few; `few` workers (one block of threads a
/// multiprocessor) as long as that leaves each only a few units, since more parts make longer sums; all of them beyond.
KS_HOST_DEVICE int choose_workers(int units, int few, int most) {
  constexpr int kFewUnits = 4;
  const int wanted = attention::smaller(units <= kFewUnits * few ? few : most, most);
  return attention::larger(attention::smaller(units, wanted), 1);
}

/// All units shared out among the workers: the first `longer` of them do one more than the rest.
struct DecodeShares {
  int units;
  int workers;
  int each;
  int longer;

  /// First unit of a worker (and, for `worker + 1`, one past its last).
  KS_HOST_DEVICE int first_unit(int worker) const { return worker * each + attention::smaller(worker, longer); }
  /// The worker that does a unit.
  KS_HOST_DEVICE int worker_of(int unit) const {
    const int in_longer = longer * (each + 1);
    return unit < in_longer ? unit / (each + 1) : longer + (unit - in_longer) / each;
  }
};

KS_HOST_DEVICE DecodeShares share_units(int units, int few, int most) {
  const int workers = choose_workers(units, few, most);
  const int each = units / workers;
  return {units, workers, each, units - each * workers};
}

}  // namespace ks::fa3
