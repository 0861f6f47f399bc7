// Tests of problems: blobs, tensors, slots, counts, and the grids as a whole.
#include "operators/attention_fwd/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "operators/attention_fwd/test_scenarios.h"
#include "operators/attention_fwd/view.h"

namespace ks::attention_fwd {
namespace {

const op::Tensor& tensor(const op::Problem& problem, const std::string& name) {
  for (const auto& tensor : problem.tensors)
    if (tensor.name == name) return tensor;
  throw Error("no tensor {}", name);
}

TEST(Layout, BlobsCarryTheirVersionsAndSizes) {
  const auto problem = make_problem(made_row());
  ASSERT_EQ(problem.shape_blob.size(), sizeof(ks_attention_fwd_shape));
  ASSERT_EQ(problem.call_blob.size(), sizeof(ks_attention_fwd_call));
  ks_attention_fwd_call call;
  std::memcpy(&call, problem.call_blob.data(), sizeof(call));
  EXPECT_EQ(call.context.abi_version, KS_ABI_VERSION);
  EXPECT_EQ(call.context.struct_bytes, sizeof(call));
  EXPECT_EQ(call.query, nullptr);
  EXPECT_EQ(shape_of(problem).header.struct_bytes, sizeof(ks_attention_fwd_shape));
}

TEST(Layout, ARivalThatRoundsItsQueryIsHeldToTheMean) {
  const auto mixed = make_problem(made_row({{"dtype", "bf16/e4m3kv"}}));
  EXPECT_GT(tensor(mixed, "output").e4m3_limit, tensor(mixed, "output").limit);
  EXPECT_GT(tensor(mixed, "output").e4m3_mean_limit, 0);
  EXPECT_LT(tensor(mixed, "output").e4m3_mean_limit, tensor(mixed, "output").e4m3_limit);
  const auto plain = make_problem(made_row({{"dtype", "bf16"}}));
  EXPECT_EQ(tensor(plain, "output").e4m3_limit, 0);
  EXPECT_EQ(tensor(plain, "lse").e4m3_mean_limit, 0);
}

TEST(Layout, PutsBothPartsOfAnMlaQueryIntoOneTensor) {
  const auto problem =
      make_problem(made_row({{"dtype", "bf16"}, {"D/Dv", "576/512"}, {"Hq/Hkv", "16/1"}, {"layout", "paged64"}}));
  const auto& query = tensor(problem, "query");
  ASSERT_EQ(query.slots.size(), 2u);
  EXPECT_EQ(query.slots[0].call_offset, offsetof(ks_attention_fwd_call, query_latent));
  EXPECT_EQ(query.slots[0].byte_offset, 0u);
  EXPECT_EQ(query.slots[1].call_offset, offsetof(ks_attention_fwd_call, query));
  EXPECT_EQ(query.slots[1].byte_offset, 1024u);
  const auto& key = tensor(problem, "key");
  ASSERT_EQ(key.slots.size(), 2u);
  EXPECT_EQ(key.slots[1].call_offset, offsetof(ks_attention_fwd_call, value));
  EXPECT_EQ(index_tensors(problem).value, -1);
  EXPECT_EQ(shape_of(problem).latent_dim, 512);
  EXPECT_EQ(shape_of(problem).values_in_keys, 1);
  EXPECT_EQ(shape_of(problem).value_head_stride, shape_of(problem).key_head_stride);
}

TEST(Layout, LaysLseOutByHead) {
  const auto dense = make_problem(made_row({{"B", "3"}, {"Hq/Hkv", "4/2"}, {"Sq", "5"}}));
  EXPECT_EQ(tensor(dense, "lse").shape, (std::vector<int64_t>{3, 5, 4, 1}));
  EXPECT_EQ(tensor(dense, "lse").strides, (std::vector<int64_t>{20, 1, 5, 1}));
  const auto packed =
      make_problem(made_row({{"B", "2"}, {"Hq/Hkv", "4/2"}, {"Sq", "5,6"}, {"Sk", "=q"}, {"layout", "varlen"}}));
  EXPECT_EQ(tensor(packed, "lse").strides, (std::vector<int64_t>{1, 11, 1}));
  EXPECT_EQ(shape_of(packed).lse_head_stride, 11);
}

TEST(Layout, CountsVisiblePairsExactly) {
  // 3 rows, 5 keys, causal from the bottom right: 3 + 4 + 5 pairs; 4 heads; 2 * (8 + 8) operations a pair.
  const auto problem = make_problem(made_row({{"Hq/Hkv", "4/2"}, {"Sq", "3"}, {"Sk", "5"}, {"mask", "causal"}}));
  EXPECT_EQ(problem.flops, 12.0 * 4 * 32);
  // Queries and outputs 3 * 4 * 8 floats each, LSE 3 * 4, keys and values 5 * 2 * 16.
  EXPECT_EQ(problem.bytes, 4.0 * (2 * 96 + 12 + 160));
}

TEST(Layout, CountsNoBytesForKeysThatNobodySees) {
  const auto problem = make_problem(made_row({{"Sq", "1"}, {"Sk", "100"}, {"mask", "win(9,0)"}}));
  EXPECT_EQ(problem.flops, 10.0 * 32);
  EXPECT_EQ(problem.bytes, 4.0 * (8 + 8 + 1 + 10 * 16));
  const auto blind = make_problem(made_row({{"Sq", "5"}, {"Sk", "2"}, {"mask", "causal"}}));
  EXPECT_EQ(blind.flops, (1 + 2) * 32.0);
  EXPECT_EQ(blind.bytes, 4.0 * (2 * 8 + 5 * 9 + 2 * 16));  // only two of five rows need their query
}

TEST(Layout, CountsAppendedKeysOnceReadAndOnceWritten) {
  const auto problem = make_problem(made_row({{"Sq", "2"}, {"Sk", "10"}, {"layout", "contiguous cache append"}}));
  EXPECT_EQ(problem.bytes, 4.0 * (2 * 8 + 2 * 9 + 8 * 16 + 2 * 2 * 16));
}

TEST(Layout, SetsLimitsByType) {
  const auto limit = [](const std::string& dtype, const std::string& mask) {
    return tensor(make_problem(made_row({{"dtype", dtype}, {"mask", mask}})), "output").limit;
  };
  EXPECT_EQ(limit("fp32", "full"), 2e-5);
  EXPECT_EQ(limit("fp16", "full"), 1e-3);
  EXPECT_EQ(limit("bf16", "full"), 8e-3);
  EXPECT_EQ(limit("bf16/e4m3kv", "full"), 8e-3);
  EXPECT_EQ(limit("e4m3", "full"), 8e-2);
  EXPECT_GT(limit("bf16", "full cap30"), 8e-3);
  EXPECT_EQ(limit("fp32", "full cap30"), 2e-5);
}

class EveryGrid : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Grids, EveryGrid,
                         ::testing::Values("demo", "cpu", "hopper", "hopper_prefill", "hopper_decode", "hopper_more"));

TEST_P(EveryGrid, MakesProblemsWhoseTensorsFitTheirBuffers) {
  for (const auto& row : grid(GetParam()).scenarios) {
    const auto problem = make_problem(row);
    std::set<uint32_t> slots;
    for (const auto& tensor : problem.tensors) {
      ASSERT_EQ(tensor.shape.size(), tensor.strides.size());
      int64_t last = 0, elements = 1;
      for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
        last += (tensor.shape[axis] - 1) * tensor.strides[axis];
        elements *= tensor.shape[axis];
      }
      if (elements > 0) {
        EXPECT_EQ(static_cast<uint64_t>(last + 1) * core::dtype_bytes(tensor.dtype), tensor.bytes)
            << row.name << " " << tensor.name;
      }
      for (const auto& slot : tensor.slots) EXPECT_TRUE(slots.insert(slot.call_offset).second) << row.name;
      EXPECT_EQ(tensor.role == op::Role::kInput, tensor.rule == op::OutputRule::kNone);
    }
    EXPECT_GE(problem.flops, 0);
    EXPECT_GT(problem.bytes, 0);
  }
}

TEST(Grids, HaveTheRowsTheyAreNamedFor) {
  EXPECT_EQ(grid("demo").scenarios.size(), 12u);
  EXPECT_GE(grid("cpu").scenarios.size(), 48u);
  EXPECT_EQ(grid("hopper").scenarios.size(), 182u);
  const auto prefill = grid("hopper_prefill").scenarios, decode = grid("hopper_decode").scenarios;
  EXPECT_EQ(prefill.size(), 113u);
  EXPECT_EQ(decode.size(), 69u);
  std::set<std::string> names;
  for (const auto& row : prefill) names.insert(row.name);
  for (const auto& row : decode) names.insert(row.name);
  for (const auto& row : grid("hopper").scenarios) EXPECT_EQ(names.count(row.name), 1u) << row.name;
}

TEST(Grids, StayWithinWhatACpuFinishes) {
  double total = 0;
  for (const auto& row : grid("demo").scenarios) {
    const double gflop = make_problem(row).flops * 1e-9;
    EXPECT_LE(gflop, 8) << row.name;
    total += gflop;
  }
  EXPECT_GE(total, 25);
  EXPECT_LE(total, 40);
  for (const auto& row : grid("cpu").scenarios) EXPECT_LE(make_problem(row).flops, 1e9) << row.name;
}

TEST(Grids, CpuUsesEveryFeatureOfTheAbi) {
  std::set<std::string> used;
  for (const auto& row : grid("cpu").scenarios) {
    const auto problem = make_problem(row);
    const auto& s = shape_of(problem);
    const View view(problem, inputs_of(problem, "mixture", 1));
    const auto mark = [&](bool is_used, const std::string& feature) {
      if (is_used) used.insert(feature);
    };
    used.insert("query " + std::to_string(s.query_dtype));
    mark(s.kv_dtype != s.query_dtype, "narrow cache");
    used.insert("rows " + std::to_string(s.rows_layout) + " keys " + std::to_string(s.kv_layout));
    if (s.page_size > 0) used.insert("page " + std::to_string(s.page_size));
    used.insert("rotary " + std::to_string(s.rotary_style));
    mark(s.rotary_dim > 0 && s.rotary_dim < s.key_dim, "rotary in part");
    mark(s.new_keys > 0 && s.rotary_dim == 0, "append alone");
    mark(s.has_leftpad != 0, "leftpad");
    mark(s.has_leftpad != 0 && s.new_keys > 0, "leftpad and append");
    mark(s.latent_dim > 0, "latent");
    mark(s.has_sinks != 0, "sinks");
    mark(s.softcap > 0, "softcap");
    mark(s.has_descale != 0 && s.descale_head_stride == 0, "scalar descale");
    mark(s.descale_head_stride != 0, "head descale");
    mark(s.window_left > 0 && s.window_right > 0, "two-sided");
    mark(s.window_left >= 0 && s.window_right < 0, "left bound only");
    mark(s.window_left < 0 && s.window_right > 0, "right bound only");
    mark(s.window_left > s.max_keys, "window beyond");
    mark(s.query_heads == s.kv_heads, "MHA");
    mark(s.kv_heads == 1 && s.query_heads > 1, "MQA");
    mark(s.kv_heads > 1 && s.query_heads > s.kv_heads, "GQA");
    mark(s.key_dim > s.value_dim, "narrow values");
    mark(s.key_dim < s.value_dim, "wide values");
    used.insert("dim " + std::to_string(s.key_dim));
    for (size_t b = 0; b < view.rows.size(); ++b) {
      mark(view.rows[b] == 0, "no rows");
      mark(view.keys[b] == 0, "no keys");
      mark(view.rows[b] == 1, "one row");
      mark(view.keys[b] == 1, "one key");
      mark(view.rows[b] > 0 && view.visible(static_cast<int64_t>(b), 0).count() == 0, "blind row");
    }
  }
  for (const char* feature : {"query 1",
                              "query 2",
                              "query 3",
                              "query 4",
                              "narrow cache",
                              "rows 0 keys 0",
                              "rows 0 keys 2",
                              "rows 0 keys 3",
                              "rows 1 keys 1",
                              "rows 1 keys 3",
                              "page 1",
                              "page 16",
                              "page 64",
                              "rotary 1",
                              "rotary 2",
                              "rotary in part",
                              "append alone",
                              "leftpad",
                              "leftpad and append",
                              "latent",
                              "sinks",
                              "softcap",
                              "scalar descale",
                              "head descale",
                              "two-sided",
                              "left bound only",
                              "right bound only",
                              "window beyond",
                              "MHA",
                              "MQA",
                              "GQA",
                              "narrow values",
                              "wide values",
                              "dim 40",
                              "dim 64",
                              "dim 72",
                              "dim 80",
                              "dim 96",
                              "dim 128",
                              "dim 192",
                              "dim 256",
                              "dim 576",
                              "no rows",
                              "no keys",
                              "one row",
                              "one key",
                              "blind row"})
    EXPECT_EQ(used.count(feature), 1u) << feature;
}

}  // namespace
}  // namespace ks::attention_fwd
