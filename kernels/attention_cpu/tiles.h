// Sizes that everything else is cut by. A key block is packed once and read by every row tile; within it, a micro tile
// of kMicroRows query rows meets kPanelKeys keys at a time, with all sums in registers.
#pragma once
#include <hwy/highway.h>

#include <cstdint>

namespace ks::attention_cpu {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using Vec = hn::Vec<FloatTag>;

constexpr FloatTag kFloats;
constexpr int kLanes = HWY_LANES(float);
constexpr bool kWideRegisterFile = kLanes == 16;  // 32 registers of 16 floats

constexpr int kMicroRows = 6;  // @tune kMicroRows {4, 6, 8, 12}
constexpr int kPanelVectors = kWideRegisterFile ? 24 / kMicroRows : 2;
constexpr int kPanelKeys = kPanelVectors * kLanes;
constexpr int kPanels = 2;  // @tune kPanels {1, 2, 4}
constexpr int kKeyBlock = kPanels * kPanelKeys;
constexpr int kMicroTiles = 16;  // @tune kMicroTiles {4, 8, 16, 32}
constexpr int kRowTile = kMicroTiles * kMicroRows;
constexpr int kMostThreads = 32;

#if defined(__AVX512BF16__) && HWY_TARGET <= HWY_AVX3
constexpr bool kPairProducts = true;  // sums of products of bfloat16 pairs in one instruction
#else
constexpr bool kPairProducts = false;
#endif

constexpr int64_t round_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace ks::attention_cpu
