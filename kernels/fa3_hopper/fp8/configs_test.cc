// The shapes of the e4m3 kernel, without a GPU.
#include "kernels/fa3_hopper/fp8/configs.h"

#include <gtest/gtest.h>

namespace ks::fa3::fp8 {
namespace {

TEST(Fp8Config, EveryShapeFitsItsSharedMemoryAndRegisters) {
  for (const Fp8Config& config : kFp8Shapes) {
    EXPECT_TRUE(config.is_valid()) << config.dim;
    EXPECT_LE(config.tile_bytes() + 1024, 232448u) << config.dim;
    const int launch = 65536 / config.threads() / 8 * 8;  // what the hardware gives each thread at the start
    EXPECT_LE(config.load_registers() + config.warpgroups * config.compute_registers(),
              launch * (config.warpgroups + 1));
  }
}

TEST(Fp8Config, ABlockOfKeysIsWholeProductSteps) {
  for (const Fp8Config& config : kFp8Shapes) {
    EXPECT_EQ(config.block_keys % 32, 0);
    EXPECT_LE(config.block_keys, 256);
    EXPECT_EQ(config.dim % config.fold_columns(), 0);
  }
}

TEST(Fp8Config, RefusesWhatDoesNotFit) {
  Fp8Config config = kFp8Shapes[static_cast<int>(Fp8Shape::kHd256)];
  config.key_stages = 4;
  EXPECT_FALSE(config.is_valid());
  config = kFp8Shapes[static_cast<int>(Fp8Shape::kHd256)];
  config.overlaps = true;  // O, S and a whole second O
  EXPECT_FALSE(config.is_valid());
  config = kFp8Shapes[static_cast<int>(Fp8Shape::kHd64)];
  config.block_keys = 144;
  EXPECT_FALSE(config.is_valid());
}

TEST(ChooseFp8Shape, TakesTheNarrowestThatHoldsBothHeadDims) {
  EXPECT_EQ(choose_fp8_shape(64, 64), Fp8Shape::kHd64);
  EXPECT_EQ(choose_fp8_shape(48, 64), Fp8Shape::kHd64);
  EXPECT_EQ(choose_fp8_shape(80, 80), Fp8Shape::kHd96);
  EXPECT_EQ(choose_fp8_shape(64, 128), Fp8Shape::kHd128);
  EXPECT_EQ(choose_fp8_shape(192, 128), Fp8Shape::kHd256);
  EXPECT_EQ(choose_fp8_shape(272, 272), Fp8Shape::kNone);
}

}  // namespace
}  // namespace ks::fa3::fp8
