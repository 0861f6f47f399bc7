// Tests of reading a row: lengths, masks, layouts, and what is refused.
#include "operators/attention_fwd/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "operators/attention_fwd/lengths.h"
#include "operators/attention_fwd/test_scenarios.h"

namespace ks::attention_fwd {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<int32_t> lengths(const std::string& text, int64_t batch) {
  return read_lengths(made_row({{"Sq", text}}), "Sq", batch);
}

TEST(Lengths, OneNumberHoldsForAllMembers) {
  EXPECT_THAT(lengths("77", 3), ElementsAre(77, 77, 77));
}

TEST(Lengths, ListsAreReadTermByTerm) {
  EXPECT_THAT(lengths("3x4+2x1+9", 6), ElementsAre(4, 4, 4, 1, 1, 9));
  EXPECT_THAT(lengths("64,0,1,300", 4), ElementsAre(64, 0, 1, 300));
  EXPECT_THAT(lengths("2x7", 2), ElementsAre(7, 7));
}

TEST(Lengths, RangesCountInSteps) {
  const auto ramp = lengths("64..505 step 7", 64);
  EXPECT_EQ(ramp.front(), 64);
  EXPECT_EQ(ramp[1], 71);
  EXPECT_EQ(ramp.back(), 505);
}

TEST(Lengths, PseudoRandomOnesLieInTheirRangeAndNeverChange) {
  const auto first = lengths("16..512 pseudo-random", 128);
  EXPECT_THAT(first, Each(::testing::AllOf(::testing::Ge(16), ::testing::Le(512))));
  EXPECT_GT(std::set<int32_t>(first.begin(), first.end()).size(), 60u);
  EXPECT_EQ(first, lengths("16..512 pseudo-random", 128));
  core::Scenario other = made_row("another name");
  other.values["Sq"] = "16..512 pseudo-random";
  EXPECT_NE(first, read_lengths(other, "Sq", 128));
}

TEST(Lengths, AboutMeansUpTo200Less) {
  const auto about = lengths("64x~1024", 64);
  EXPECT_THAT(about, Each(::testing::AllOf(::testing::Ge(824), ::testing::Le(1024))));
  EXPECT_GT(std::set<int32_t>(about.begin(), about.end()).size(), 20u);
  EXPECT_THAT(lengths("5x~3", 5), Each(::testing::Ge(0)));
}

TEST(Lengths, EveryFifthAndTheLastAreEmpty) {
  EXPECT_THAT(lengths("0 every 5th and last", 9), ElementsAre(0, 910, 920, 930, 940, 0, 960, 970, 0));
}

TEST(Spec, ReadsTypes) {
  const Spec mixed = read_spec(made_row({{"dtype", "bf16/e4m3kv"}}));
  EXPECT_EQ(mixed.query_dtype, core::Dtype::kBf16);
  EXPECT_EQ(mixed.kv_dtype, core::Dtype::kE4m3);
  EXPECT_EQ(mixed.output_dtype, core::Dtype::kBf16);
  EXPECT_EQ(mixed.descale, Descale::kScalar);
  const Spec narrow = read_spec(made_row({{"dtype", "e4m3"}, {"note", "random descale (B,Hkv)"}}));
  EXPECT_EQ(narrow.output_dtype, core::Dtype::kBf16);
  EXPECT_EQ(narrow.descale, Descale::kPerHead);
  EXPECT_EQ(read_spec(made_row()).descale, Descale::kNone);
}

TEST(Spec, ReadsMasks) {
  const auto read = [](const std::string& mask) { return read_spec(made_row({{"mask", mask}})); };
  EXPECT_EQ(read("full").window_right, -1);
  EXPECT_EQ(read("causal").window_right, 0);
  EXPECT_EQ(read("causal").window_left, -1);
  const Spec window = read("win(127,5) cap30 sink");
  EXPECT_EQ(window.window_left, 127);
  EXPECT_EQ(window.window_right, 5);
  EXPECT_EQ(window.softcap, 30);
  EXPECT_TRUE(window.has_sinks);
  EXPECT_FALSE(read("causal cap2.5").has_sinks);
  EXPECT_EQ(read("causal cap2.5").softcap, 2.5f);
}

TEST(Spec, ReadsLayouts) {
  const auto read = [](const std::string& layout) { return read_spec(made_row({{"layout", layout}, {"Sk", "64"}})); };
  EXPECT_EQ(read("dense").kv_layout, KS_KV_DENSE);
  EXPECT_EQ(read("varlen").rows_layout, KS_ROWS_PACKED);
  EXPECT_EQ(read("varlen").kv_layout, KS_KV_PACKED);
  EXPECT_EQ(read("contiguous cache").kv_layout, KS_KV_CACHE);
  EXPECT_TRUE(read("contiguous cache + leftpad").has_leftpad);
  const Spec paged = read("paged16 varlen");
  EXPECT_EQ(paged.kv_layout, KS_KV_PAGED);
  EXPECT_EQ(paged.page_size, 16);
  EXPECT_EQ(paged.rows_layout, KS_ROWS_PACKED);
  const Spec appended = read("paged128 append + rotary");
  EXPECT_TRUE(appended.appends);
  EXPECT_EQ(appended.rotary_style, KS_ROTARY_HALVES);
  EXPECT_EQ(appended.rotary_dim, 8);
  const Spec pairs = read("contiguous cache append + rotary interleaved 4");
  EXPECT_EQ(pairs.rotary_style, KS_ROTARY_INTERLEAVED);
  EXPECT_EQ(pairs.rotary_dim, 4);
  EXPECT_EQ(read("paged16 append").rotary_style, KS_ROTARY_NONE);
}

TEST(Spec, AppendingCountsTheLongestMembersTotal) {
  const Spec spec = read_spec(made_row({{"layout", "paged16 append"}, {"B", "6"}, {"Sq", "4"}, {"Sk", "100"}}));
  EXPECT_EQ(spec.new_keys(), 4);
  EXPECT_EQ(spec.keys.front(), 4);
  EXPECT_EQ(spec.keys.back(), 100);
  EXPECT_THAT(spec.keys, Each(::testing::AllOf(::testing::Ge(4), ::testing::Le(100))));
}

TEST(Spec, ReadsTheScaleFromTheNote) {
  EXPECT_FLOAT_EQ(read_spec(made_row({{"note", "scale 1/12"}})).scale, 1.0f / 12);
  EXPECT_FLOAT_EQ(read_spec(made_row({{"note", "Gemma, scale 0.25"}})).scale, 0.25f);
  EXPECT_FLOAT_EQ(read_spec(made_row({{"D/Dv", "64/64"}, {"note", "large scale models"}})).scale, 0.125f);
}

struct Refusal {
  std::string column, text, why;
  std::map<std::string, std::string> others = {};
};

TEST(Spec, RefusesWhatItCannotReadAndNamesOriginAndColumn) {
  const Refusal refusals[] = {
      {"dtype", "bf15", "unknown dtype"},
      {"dtype", "i32", "must be fp32"},
      {"dtype", "bf16/e5m2kv", "only \"/e4m3kv\""},
      {"dtype", "fp32/e4m3kv", "only \"/e4m3kv\""},
      {"B", "0", "out of range"},
      {"B", "", "not a whole number"},
      {"Hq/Hkv", "8", "two numbers"},
      {"Hq/Hkv", "7/2", "no multiple"},
      {"D/Dv", "64/x", "not a whole number"},
      {"Sq", "2,3", "2 lengths"},
      {"Sq", "4x1", "out of range"},
      {"Sq", "5..3 step 1", "range is empty"},
      {"Sq", "3..5", "step n"},
      {"Sq", "3..5 stride 1", "step n"},
      {"Sq", "-4", "out of range"},
      {"Sq", "0", "nothing to compute"},
      {"Sq", "1,2", "dense rows have one length", {{"B", "2"}}},
      {"Sk", "1,2", "dense keys have one length", {{"B", "2"}}},
      {"Sk", "=k", "not a whole number"},
      {"mask", "causel", "must begin with"},
      {"mask", "win(3)", "must begin with"},
      {"mask", "win(-2,0)", "out of range"},
      {"mask", "causal cap", "not a number"},
      {"mask", "causal cap0", "above 0"},
      {"mask", "causal sunk", "unknown word"},
      {"layout", "ragged", "not known"},
      {"layout", "paged", "not known"},
      {"layout", "paged0", "out of range"},
      {"layout", "dense + leftpad", "only a cache"},
      {"layout", "paged16 + leftpad", "contiguous cache"},
      {"layout", "paged16 varlen append", "dense rows only"},
      {"layout", "contiguous cache + rotary", "goes with append"},
      {"layout", "contiguous cache append + rotary 3", "pairs"},
      {"layout", "contiguous cache append + rotary 99", "out of range"},
      {"layout", "contiguous cache append", "query's type", {{"dtype", "e4m3"}}},
      {"note", "scale 1/0", "above 0"},
      {"note", "random descale (B,Hkv)", "e4m3"},
      {"Sk", "1", "not below Sq", {{"layout", "paged16 append"}}},
  };
  for (const auto& refusal : refusals) {
    core::Scenario row = made_row(refusal.others);
    row.values[refusal.column] = refusal.text;
    try {
      static_cast<void>(read_spec(row));
      ADD_FAILURE() << refusal.column << " \"" << refusal.text << "\" was accepted";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), ::testing::StartsWith("grid.tsv:9: column \"" + refusal.column + "\": "));
      EXPECT_THAT(e.what(), ::testing::HasSubstr(refusal.why)) << refusal.text;
    }
  }
}

TEST(Spec, NamesAMissingColumn) {
  core::Scenario row = made_row();
  row.values.erase("mask");
  EXPECT_THROW(static_cast<void>(read_spec(row)), Error);
}

/// The mask as the ABI's header writes it.
bool sees(const ks_attention_fwd_shape& shape, int64_t i, int64_t j, int64_t rows, int64_t keys, int64_t leftpad) {
  if (j < 0 || j >= keys || j < leftpad) return false;
  if (shape.window_left >= 0 && j < i + keys - rows - shape.window_left) return false;
  return shape.window_right < 0 || j <= i + keys - rows + shape.window_right;
}

TEST(Visible, AgreesWithTheDefinitionOfTheMask) {
  for (const int left : {-1, 0, 3, 50})
    for (const int right : {-1, 0, 2, 50})
      for (const int64_t rows : {1, 4, 9})
        for (const int64_t keys : {0, 1, 5, 12})
          for (const int64_t leftpad : {0, 3}) {
            ks_attention_fwd_shape shape{};
            shape.window_left = left;
            shape.window_right = right;
            const Visible any = visible_to_any(shape, rows, keys, leftpad);
            for (int64_t j = 0; j < keys; ++j) {
              bool seen = false;
              for (int64_t i = 0; i < rows; ++i) {
                const Visible visible = visible_keys(shape, i, rows, keys, leftpad);
                const bool expected = sees(shape, i, j, rows, keys, leftpad);
                seen = seen || expected;
                ASSERT_EQ(expected, visible.first <= j && j <= visible.last && visible.count() > 0);
              }
              ASSERT_EQ(seen, any.first <= j && j <= any.last && any.count() > 0)
                  << left << " " << right << " " << rows << " " << keys << " " << leftpad << " " << j;
            }
          }
}

}  // namespace
}  // namespace ks::attention_fwd
