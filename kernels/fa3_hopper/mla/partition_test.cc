// How key blocks are shared out among workers: everything once, nobody with much more than the others.
#include "kernels/fa3_hopper/mla/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace ks::fa3::mla {
namespace {

/// The blocks of each unit as the kernel lays them out: unit -> worker of each of its blocks.
std::vector<std::vector<int>> workers_of(const std::vector<int>& blocks, int workers, int sum_cost) {
  const int total = std::accumulate(blocks.begin(), blocks.end(), 0);
  const int longest = *std::max_element(blocks.begin(), blocks.end());
  const Partition partition = share_out(total, longest, static_cast<int>(blocks.size()), workers, sum_cost);
  std::vector<std::vector<int>> result;
  int start = 0;
  for (const int own : blocks) {
    std::vector<int> holders;
    for (int i = 0; i < own; ++i) holders.push_back((start + i) / partition.quantum);
    start += partition.padded > 0 ? partition.padded : own;
    result.push_back(holders);
  }
  return result;
}

int most_blocks(const std::vector<std::vector<int>>& units) {
  std::vector<int> load;
  for (const std::vector<int>& unit : units) {
    for (const int worker : unit) {
      if (worker >= static_cast<int>(load.size())) load.resize(worker + 1);
      ++load[worker];
    }
  }
  return *std::max_element(load.begin(), load.end());
}

TEST(ShareOut, NeverNeedsMoreWorkersThanThereAre) {
  for (int workers : {1, 2, 66, 132}) {
    for (int units : {1, 3, 32, 48, 66, 67, 128, 200}) {
      for (int longest : {1, 2, 5, 32, 64, 255}) {
        for (int sum_cost : {2, 4, 16}) {
          for (const auto& unit : workers_of(std::vector<int>(units, longest), workers, sum_cost)) {
            EXPECT_LT(unit.back(), workers) << workers << " workers, " << units << " units of " << longest;
          }
        }
      }
    }
  }
}

TEST(ShareOut, RaggedUnitsAreSharedEqually) {
  std::vector<int> blocks;
  for (int i = 0; i < 48; ++i) blocks.push_back(8 + i * 37 % 120);
  const int total = std::accumulate(blocks.begin(), blocks.end(), 0);
  EXPECT_LE(most_blocks(workers_of(blocks, 66, 16)), std::max((total + 65) / 66, 12));
}

TEST(ShareOut, EqualUnitsAreCutWhereNoPartStraddlesTwo) {
  const auto halves = workers_of(std::vector<int>(32, 64), 66, 16);
  for (const auto& unit : halves) {
    EXPECT_EQ(unit.back() - unit.front(), 1);
    EXPECT_EQ(std::count(unit.begin(), unit.end(), unit.front()), 32);
  }
  for (const auto& unit : workers_of(std::vector<int>(128, 32), 66, 16)) EXPECT_EQ(unit.front(), unit.back());
}

TEST(ShareOut, OneLongUnitIsCutOnlyAsFarAsSummingPays) {
  const auto cheap = workers_of({256}, 132, 4);
  EXPECT_GE(cheap[0].back() + 1, 16);
  EXPECT_LE(cheap[0].back() + 1, 64);
  EXPECT_LT(workers_of({256}, 132, 16)[0].back(), cheap[0].back());
}

TEST(HoldersOf, CoverAUnitFromItsFirstBlockToItsLast) {
  EXPECT_EQ(holders_of(0, 31, 31).count, 1);
  EXPECT_EQ(holders_of(30, 2, 31).first, 0);
  EXPECT_EQ(holders_of(30, 2, 31).count, 2);
  EXPECT_EQ(holders_of(62, 64, 31).first, 2);
  EXPECT_EQ(holders_of(62, 64, 31).count, 3);
}

}  // namespace
}  // namespace ks::fa3::mla
