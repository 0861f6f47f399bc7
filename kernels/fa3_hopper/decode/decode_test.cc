// The decode kernel's pure parts: how keys are shared out among workers, and the choice of a compiled shape.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/fa3_hopper/decode/decode_configs.h"
#include "kernels/fa3_hopper/decode/partition.h"

namespace ks::fa3 {
namespace {

using attention::kUnlimited;

TEST(DecodeConfig, EveryCompiledShapeFitsSharedMemoryAndRegisters) {
  for (int dim : kDecodeDims) {
    for (int tiles : kDecodeTiles) {
      const int shape = decode_shape(dim, 8 * tiles);
      if (shape < 0) continue;
      for (bool e4m3 : {false, true}) {
        const DecodeConfig config = decode_config(shape, Element::kBf16, e4m3);
        EXPECT_TRUE(config.is_valid()) << dim << " x " << tiles;
        EXPECT_EQ(config.dim, dim);
        EXPECT_EQ(config.row_tiles, tiles);
        const int query = config.holds_query() ? config.dim * std::max(config.row_tiles, 2) / 8 : 0;
        EXPECT_LE(config.output_registers() + query, config.blocks_per_sm() == 1 ? 200 : 120);
        const size_t ring = size_t(config.slots()) * size_t(config.tile_bytes());
        EXPECT_LE(ring + 2 * size_t(config.query_bytes()) + config.merge_bytes(),
                  size_t{232448} / size_t(config.blocks_per_sm()));
        EXPECT_GE(ring * size_t(config.blocks_per_sm()), size_t{96} << 10);  // enough under way to hide the memory
      }
    }
  }
}

TEST(DecodeShape, TakesTheFewestRowTilesThatHoldAllRows) {
  EXPECT_EQ(decode_config(decode_shape(128, 4), Element::kBf16, false).row_tiles, 1);
  EXPECT_EQ(decode_config(decode_shape(128, 9), Element::kBf16, false).row_tiles, 2);
  EXPECT_EQ(decode_config(decode_shape(64, 32), Element::kF16, true).row_tiles, 4);
}

TEST(DecodeShape, LeavesOtherDimsAndManyRowsToOthers) {
  EXPECT_LT(decode_shape(80, 4), 0);
  EXPECT_LT(decode_shape(128, 33), 0);
  EXPECT_LT(decode_shape(256, 17), 0);
}

TEST(DecodeBlocks, CoverAllVisibleKeysAndPlainOnesAreSeenByEveryRow) {
  for (int keys : {1, 63, 64, 200, 777}) {
    for (int rows : {1, 3, 8}) {
      for (int left : {5, 127, kUnlimited}) {
        for (int right : {0, 2, kUnlimited}) {
          for (int leftpad : {0, 70}) {
            for (int step : {1, 16, 64}) {
              const DecodeBlocks blocks = decode_blocks(rows, keys, leftpad, left, right, 64, step);
              for (int position = 0; position < rows; ++position) {
                const attention::KeyRange seen = attention::visible_keys(position, rows, keys, left, right);
                const int begin = std::max(seen.begin, leftpad);
                for (int key = begin; key < seen.end; ++key) {
                  EXPECT_GE(key, blocks.origin);
                  EXPECT_LT(key, blocks.origin + 64 * blocks.count);
                }
                for (int block = blocks.first_plain; block < std::min(blocks.end_plain, blocks.count); ++block) {
                  EXPECT_LE(begin, blocks.origin + 64 * block);
                  EXPECT_GE(seen.end, blocks.origin + 64 * (block + 1));
                }
              }
              EXPECT_EQ(blocks.origin % step, 0);
            }
          }
        }
      }
    }
  }
}

TEST(TileUnits, ATileWithoutKeysIsStillVisited) {
  EXPECT_EQ(tile_units(1, 0), 1);
  EXPECT_EQ(tile_units(0, 0), 0);
  EXPECT_EQ(tile_units(2, 9), 9);
}

TEST(Shares, CoverAllUnitsAndDifferByOneAtMost) {
  for (int units : {1, 5, 131, 132, 1000, 99991, 67108864}) {
    const DecodeShares shares = share_units(units, 132, 264);
    ASSERT_LE(shares.workers, units);
    int next = 0;
    for (int worker = 0; worker < shares.workers; ++worker) {
      const int begin = shares.first_unit(worker);
      const int end = shares.first_unit(worker + 1);
      EXPECT_EQ(begin, next);
      EXPECT_GE(end - begin, units / shares.workers);
      EXPECT_LE(end - begin, units / shares.workers + 1);
      EXPECT_EQ(shares.worker_of(begin), worker);
      EXPECT_EQ(shares.worker_of(end - 1), worker);
      next = end;
    }
    EXPECT_EQ(next, units);
  }
}

TEST(Shares, AWorkerLeavesAtMostOnePartBeforeAndOneAfterItsWholeTiles) {
  // Parts go to slot 2w if the tile began before the worker, 2w + 1 if it began with it: no two parts may share one.
  for (int length : {1, 3, 8, 50}) {
    const int tiles = 37;
    const DecodeShares shares = share_units(length * tiles, 12, 24);
    std::vector<int> used(2 * shares.workers, 0);
    for (int tile = 0; tile < tiles; ++tile) {
      const int first = shares.worker_of(tile * length);
      const int last = shares.worker_of((tile + 1) * length - 1);
      for (int worker = first; first != last && worker <= last; ++worker) ++used[2 * worker + (worker == first)];
    }
    for (int count : used) EXPECT_LE(count, 1);
  }
}

TEST(Team, IsADivisorOfTheHeadsThatFillsTheDevice) {
  EXPECT_EQ(choose_team(8, 256, 264), 8);
  EXPECT_EQ(choose_team(32, 256, 264), 8);
  EXPECT_EQ(choose_team(32, 64, 264), 32);
  EXPECT_EQ(choose_team(32, 64, 132), 32);
  EXPECT_EQ(choose_team(8, 512, 132), 4);  // 2 KB a key are enough
  EXPECT_EQ(choose_team(1, 256, 264), 1);
  EXPECT_EQ(choose_team(7, 256, 264), 7);
}

TEST(Workers, FewUnitsAreOneEachAndManyUseEveryPlace) {
  EXPECT_EQ(choose_workers(1, 132, 264), 1);
  EXPECT_EQ(choose_workers(64, 132, 264), 64);
  EXPECT_EQ(choose_workers(1000000, 132, 264), 264);
}

}  // namespace
}  // namespace ks::fa3
