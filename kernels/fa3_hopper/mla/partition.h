// How the key blocks of all units (a unit: one tile of query rows, or a cluster's two, with one member's keys) are
// shared out among workers: the units' blocks are laid end to end, and worker w takes the w-th run of `quantum` of
// them. Pure; the kernel computes it from lengths in device memory, the tests without a GPU.
#pragma once

#include "kernels/attention/problem.h"

namespace ks::fa3::mla {

struct Partition {
  int quantum;  ///< blocks a worker
  int padded;   ///< blocks that every unit counts for; 0: each counts for its own number
};

/// What a part beyond the first costs a worker (fetching Q, an empty pipeline), in sixteenths of a block.
inline constexpr int kPartCost = 24;

KS_HOST_DEVICE int divide_up(int a, int b) {
  return (a + b - 1) / b;
}

/// `total` blocks of `units` units, the longest of `longest`, for `workers`. Writing and summing the partial result of
/// a part costs `sum_cost` sixteenths of a block. Equal units are cut so that no part straddles two of them where that
/// is cheaper than exactly equal shares.
KS_HOST_DEVICE Partition share_out(int total, int longest, int units, int workers, int sum_cost) {
  const int equal = divide_up(total, workers) > 0 ? divide_up(total, workers) : 1;
  int shortest = 1;  // below this, summing costs more than it saves: parts * sum_cost = quantum
  while (16 * shortest * shortest < longest * sum_cost) ++shortest;
  const int quantum = equal > shortest ? equal : shortest;
  Partition best = {quantum, 0};
  if (total != units * longest || units == 0) return best;
  int best_cost = 16 * quantum + kPartCost + sum_cost * (divide_up(longest, quantum) + 1);
  const int most = workers > units ? workers / units : 1;
  const int close = longest / shortest;  // where cutting and summing cost the same
  for (int i = 0; i < 6; ++i) {
    const int parts = i < 2 ? i + 1 : i == 5 ? most : close + i - 3;
    if (parts < 1 || parts > longest || parts > most) continue;
    const int cut = divide_up(longest, parts);
    const int rounds = divide_up(units * divide_up(longest, cut), workers);
    const int cost = rounds * (16 * cut + kPartCost) - kPartCost + (parts > 1 ? sum_cost * (parts + 1) : 0);
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = {rounds * cut, divide_up(longest, cut) * cut};
  }
  return best;
}

/// Which workers hold a unit that counts for blocks start .. start+length-1.
struct Holders {
  int first;
  int count;
};
KS_HOST_DEVICE Holders holders_of(int start, int length, int quantum) {
  const int first = start / quantum;
  return {first, (start + length - 1) / quantum - first + 1};
}

}  // namespace ks::fa3::mla
