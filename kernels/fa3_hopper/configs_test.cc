// The choice of kernel shapes and splits, and the arithmetic of tiles and visible keys: all pure, all without a GPU.
#include "kernels/fa3_hopper/configs.h"

#include <gtest/gtest.h>

#include "kernels/attention/parts/visible_keys.h"

namespace ks::fa3 {
namespace {

ForwardChoice choice_of(int key_dim, int value_dim, int rows, int ratio, bool masked, int visible) {
  return {.key_dim = key_dim,
          .value_dim = value_dim,
          .rows_per_group = rows,
          .ratio = ratio,
          .masked = masked,
          .gathers = false,
          .visible_keys = visible};
}

TEST(ForwardConfig, EveryShapeFitsItsSharedMemoryAndRegisters) {
  for (const ForwardConfig& config : kForwardShapes) {
    EXPECT_TRUE(config.is_valid()) << config.key_dim << " x " << config.value_dim;
    if (!config.moves_registers()) continue;
    const int launch = 65536 / config.threads() / 8 * 8;  // what the hardware gives each thread at the start
    EXPECT_LE(config.load_registers() + config.warpgroups * config.compute_registers(),
              launch * (config.warpgroups + 1));
  }
}

TEST(ForwardConfig, RegistersHoldOutputScoresAndWeights) {
  for (const ForwardConfig& config : kForwardShapes) {
    const int threads = config.threads() * config.blocks_per_sm;
    const int most = config.moves_registers() ? config.compute_registers() : 65536 / threads;
    EXPECT_LT(config.value_dim / 2 + config.block_keys / 2 + config.block_keys / 4, most);
  }
}

TEST(ChooseShape, CoversEveryHeadDimWithTheNarrowestShape) {
  for (int dim = 8; dim <= 256; dim += 8) {
    const ForwardShape shape = choose_shape(choice_of(dim, dim, 4096, 1, true, 2048));
    ASSERT_NE(shape, ForwardShape::kNone) << dim;
    const ForwardConfig config = config_of(shape, Element::kBf16, false);
    EXPECT_GE(config.key_dim, dim);
    EXPECT_GE(config.value_dim, dim);
    if (dim <= 64) {
      EXPECT_EQ(config.value_dim, 64);
    }
    if (dim > 64 && dim <= 96) {
      EXPECT_EQ(config.value_dim, 96);
    }
  }
  EXPECT_EQ(choose_shape(choice_of(264, 264, 4096, 1, true, 2048)), ForwardShape::kNone);
}

TEST(ChooseShape, FewRowsTakeAShapeThatMaySplit) {
  for (int dim : {64, 96, 128, 192, 256}) {
    const ForwardShape shape = choose_shape(choice_of(dim, dim, 64, 4, true, 8192));
    EXPECT_TRUE(config_of(shape, Element::kBf16, false).may_split()) << dim;
    EXPECT_EQ(config_of(shape, Element::kBf16, false).rows(), 64) << dim;
  }
}

TEST(ChooseShape, ShortWindowsAt64ColumnsTakeSmallBlocks) {
  EXPECT_EQ(choose_shape(choice_of(64, 64, 8192 * 8, 8, true, 128)), ForwardShape::kHd64Narrow);
  EXPECT_EQ(choose_shape(choice_of(64, 64, 8192 * 8, 8, true, 4096)), ForwardShape::kHd64Long);
}

TEST(ChooseShape, WideBlocksOnlyWhereTheyWasteLittle) {
  EXPECT_EQ(choose_shape(choice_of(128, 128, 1024, 1, false, 1024)), ForwardShape::kHd128);
  EXPECT_EQ(choose_shape(choice_of(128, 128, 16384, 1, false, 16384)), ForwardShape::kHd128Wide);
}

TEST(ChooseShape, SmallPagesTakeAShapeThatCanGather) {
  for (int dim : {64, 96, 128}) {
    ForwardChoice choice = choice_of(dim, dim, 8192, 4, true, 4096);
    choice.gathers = true;
    EXPECT_TRUE(config_of(choose_shape(choice), Element::kBf16, false).may_gather()) << dim;
  }
}

TEST(ChooseSplits, OneLongSequenceUsesTheWholeDevice) {
  const int splits = choose_splits(8, 2048, 264);
  EXPECT_GE(splits * 8, 200);
  EXPECT_LE(splits, 64);
}

TEST(ChooseSplits, NoSplitWhereTilesFillTheDeviceOrKeysAreFew) {
  EXPECT_EQ(choose_splits(264, 64, 264), 1);
  EXPECT_EQ(choose_splits(4, 1, 264), 1);
}

TEST(VisibleKeys, CausalIsAlignedToTheLastKey) {
  const attention::KeyRange last = attention::visible_keys(3, 4, 10, attention::kUnlimited, 0);
  EXPECT_EQ(last.begin, 0);
  EXPECT_EQ(last.end, 10);
  const attention::KeyRange none = attention::visible_keys(0, 8, 3, attention::kUnlimited, 0);
  EXPECT_LE(none.end, none.begin);
}

TEST(PlanBlocks, PlainBlocksAreVisibleToEveryPositionAndMaskedOnesCoverTheRest) {
  for (int keys : {1, 63, 200, 777}) {
    for (int rows : {1, 40, 300}) {
      for (int left : {5, 127, attention::kUnlimited}) {
        for (int right : {0, 16, attention::kUnlimited}) {
          const int first = rows / 3;
          const int last = rows - 1 < first + 31 ? rows - 1 : first + 31;
          const attention::BlockPlan plan = attention::plan_blocks(first, last, rows, keys, left, right, 64, 16);
          for (int position = first; position <= last; ++position) {
            const attention::KeyRange seen = attention::visible_keys(position, rows, keys, left, right);
            if (seen.end <= seen.begin) continue;
            EXPECT_GE(seen.begin, plan.origin);
            EXPECT_LE(seen.end, plan.origin + plan.end * 64);
            for (int block = plan.first_plain; block < plan.end_plain && block < plan.end; ++block) {
              EXPECT_LE(seen.begin, plan.origin + block * 64);
              EXPECT_GE(seen.end, plan.origin + (block + 1) * 64);
            }
          }
          EXPECT_EQ(plan.origin % 16, 0);
        }
      }
    }
  }
}

TEST(PartOf, PartsCoverAllBlocksOnce) {
  for (int blocks : {1, 5, 64}) {
    int next = 0;
    for (int split = 0; split < 7; ++split) {
      const attention::BlockPlan part = attention::part_of({0, 0, blocks, 0, blocks}, split, 7);
      EXPECT_EQ(part.begin, next);
      next = part.end;
    }
    EXPECT_EQ(next, blocks);
  }
}

}  // namespace
}  // namespace ks::fa3
