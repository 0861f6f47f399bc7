// See plan.h.
#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/fa3_hopper/plan.h"
#include "kernels/ptx/tma.cuh"

namespace ks::fa3 {
namespace {

using attention::KeyLayout;

/// Keys and values that tiles running at the same time should share in L2.
constexpr int64_t kSectionBytes = int64_t{32} << 20;

bool multiple_of(int64_t value, int64_t step) {
  return value % step == 0;
}

/// The copy engine wants strides of 16 bytes; everything else that is missing is left to other kernels.
bool is_handled(const ks_attention_fwd_shape& s) {
  const bool types = (s.query_dtype == KS_BF16 || s.query_dtype == KS_F16) && s.kv_dtype == s.query_dtype &&
                     s.output_dtype == s.query_dtype;
  const bool plain = s.latent_dim == 0 && s.values_in_keys == 0 && s.new_keys == 0 &&
                     s.rotary_style == KS_ROTARY_NONE && s.has_leftpad == 0;
  const bool sizes = s.batch >= 0 && s.query_heads > 0 && s.kv_heads > 0 && s.query_heads % s.kv_heads == 0 &&
                     s.key_dim > 0 && s.value_dim > 0 && s.key_dim % 8 == 0 && s.value_dim % 8 == 0 &&
                     s.total_rows < INT32_MAX && s.total_keys < INT32_MAX && s.scale > 0.0f && s.softcap >= 0.0f &&
                     s.max_rows < (1 << 24) && s.max_keys < (1 << 24);
  for (const int64_t stride : {s.query_batch_stride, s.query_row_stride, s.query_head_stride, s.key_batch_stride,
                               s.key_row_stride, s.key_head_stride, s.value_batch_stride, s.value_row_stride,
                               s.value_head_stride, s.output_batch_stride, s.output_row_stride, s.output_head_stride}) {
    if (stride < 0 || !multiple_of(stride, 8) || stride >= (int64_t{1} << 38)) return false;
  }
  return types && plain && sizes;
}

/// The most query heads (a divisor of the group) whose rows fit in one tile together.
int packed_heads(int ratio, int most) {
  for (int heads = std::min(ratio, most); heads > 1; --heads) {
    if (ratio % heads == 0) return heads;
  }
  return 1;
}

MapSpec map_spec(int64_t columns, int64_t dim1, int64_t dim2, int64_t dim3, int64_t stride1, int64_t stride2,
                 int64_t stride3, int box1, int box2) {
  // A dimension of one is never stepped along, but its stride must still be a valid one.
  const auto bytes = [](int64_t stride) { return static_cast<cuuint64_t>(std::max<int64_t>(stride, 8) * 2); };
  const auto count = [](int64_t n) { return static_cast<cuuint64_t>(std::max<int64_t>(n, 1)); };
  return {{count(columns), count(dim1), count(dim2), count(dim3)},
          {bytes(stride1), bytes(stride2), bytes(stride3)},
          {64, static_cast<cuuint32_t>(box1), static_cast<cuuint32_t>(box2), 1}};
}

void plan_maps(const ks_attention_fwd_shape& s, Plan& plan) {
  const ForwardTerms& params = plan.params;
  const bool rows_packed = s.rows_layout == KS_ROWS_PACKED;
  plan.query = map_spec(s.key_dim, s.query_heads, rows_packed ? s.total_rows : s.max_rows, rows_packed ? 1 : s.batch,
                        s.query_head_stride, s.query_row_stride, rows_packed ? 0 : s.query_batch_stride,
                        params.problem.ratio, params.order.positions_per_tile);
  const int store_positions = params.stores_boxes ? 16 / params.problem.ratio : 1;
  plan.output = map_spec(s.value_dim, s.query_heads, rows_packed ? s.total_rows : s.max_rows, rows_packed ? 1 : s.batch,
                         s.output_head_stride, s.output_row_stride, rows_packed ? 0 : s.output_batch_stride,
                         params.stores_boxes ? params.problem.ratio : 1, store_positions);
  int64_t rows = s.max_keys;
  int64_t members = s.batch;
  if (s.kv_layout == KS_KV_PACKED) rows = s.total_keys, members = 1;
  if (s.kv_layout == KS_KV_PAGED) rows = s.page_size, members = s.page_count;
  const auto keys = [&](int columns, int64_t row_stride, int64_t head_stride, int64_t batch_stride) {
    return map_spec(columns, rows, s.kv_heads, members, row_stride, head_stride, batch_stride, params.granule, 1);
  };
  plan.key = keys(s.key_dim, s.key_row_stride, s.key_head_stride, s.key_batch_stride);
  plan.value = keys(s.value_dim, s.value_row_stride, s.value_head_stride, s.value_batch_stride);
}

void plan_problem(const ks_attention_fwd_shape& s, attention::AttentionProblem& problem) {
  const int64_t reach = int64_t{s.max_rows} + s.max_keys;  // a window as wide as this hides nothing
  const auto window = [&](int keys) { return keys < 0 || keys >= reach ? attention::kUnlimited : keys; };
  problem = {};
  problem.batch = s.batch;
  problem.kv_heads = s.kv_heads;
  problem.max_rows = s.max_rows;
  problem.max_keys = s.max_keys;
  problem.value_dim = s.value_dim;
  problem.window_left = window(s.window_left);
  problem.window_right = window(s.window_right);
  problem.rows_packed = s.rows_layout == KS_ROWS_PACKED;
  problem.key_layout = static_cast<KeyLayout>(s.kv_layout);  // same order as KS_KV_*
  problem.page_size = s.page_size;
  problem.page_table_stride = s.page_table_stride;
  problem.scale = s.scale;
  problem.softcap = s.softcap;
  problem.output_batch_stride = s.output_batch_stride;
  problem.output_row_stride = s.output_row_stride;
  problem.output_head_stride = s.output_head_stride;
  problem.lse_batch_stride = s.lse_batch_stride;
  problem.lse_row_stride = s.lse_row_stride;
  problem.lse_head_stride = s.lse_head_stride;
}

void plan_order(const ks_attention_fwd_shape& s, const ForwardConfig& config, Plan& plan) {
  attention::AttentionProblem& problem = plan.params.problem;
  attention::TileOrder& order = plan.params.order;
  const int ratio = s.query_heads / s.kv_heads;
  problem.ratio = packed_heads(ratio, config.rows());
  order.positions_per_tile = config.rows() / problem.ratio;
  order.groups = s.query_heads / problem.ratio;
  order.groups_per_kv_head = ratio / problem.ratio;
  order.row_tiles = (s.max_rows + order.positions_per_tile - 1) / order.positions_per_tile;
  order.tile_count = order.row_tiles * order.groups * s.batch;
  const int64_t pair_bytes = int64_t{std::max(s.max_keys, 1)} * (s.key_dim + s.value_dim) * 2;
  const int64_t pairs = int64_t{order.groups} * s.batch;
  order.pairs_per_section =
      static_cast<int>(std::clamp<int64_t>(kSectionBytes / pair_bytes, 1, std::max<int64_t>(pairs, 1)));
  // Without a mask all tiles are alike, and no order of lengths is to be kept: all tiles of a pair together, which then
  // asks device memory for keys and values all the time, instead of for a whole section's at its beginning.
  if (problem.window_right == attention::kUnlimited && problem.window_left == attention::kUnlimited) {
    order.pairs_per_section = 1;
  }
  order.splits = 1;
}

/// The most tiles that a call can have.
int64_t most_tiles(const ks_attention_fwd_shape& s, const attention::TileOrder& order) {
  if (s.rows_layout != KS_ROWS_PACKED) return order.tile_count;
  const int64_t full = s.total_rows / order.positions_per_tile + s.batch;  // every member may end in a tile of its own
  return std::min<int64_t>(order.tile_count, full * order.groups);
}

/// Keys that a position sees, on average: of the longest member, or of the average one where lengths differ much.
int average_visible(const ks_attention_fwd_shape& s, const attention::AttentionProblem& problem) {
  int64_t visible = s.max_keys;
  if (s.kv_layout == KS_KV_PACKED && s.batch > 0) visible = std::max<int64_t>(s.total_keys / s.batch, s.max_keys / 4);
  if (problem.window_right != attention::kUnlimited) visible -= std::min<int64_t>(s.max_rows, visible) / 2;
  const int64_t window = int64_t{problem.window_left} + std::min(problem.window_right, s.max_keys) + 1;
  return static_cast<int>(std::clamp<int64_t>(std::min(visible, window), 1, std::max(s.max_keys, 1)));
}

void plan_splits(const ks_attention_fwd_shape& s, const ForwardConfig& config, int multiprocessors, Plan& plan) {
  attention::TileOrder& order = plan.params.order;
  const int64_t tiles = most_tiles(s, order);
  const int rows = order.positions_per_tile * plan.params.problem.ratio;
  const int64_t window = int64_t{plan.params.problem.window_left} + order.positions_per_tile;
  const int keys = static_cast<int>(std::min<int64_t>(s.max_keys, window));
  constexpr int64_t kMostTiles = (KS_STATE_BYTES_MAX - kCounterBytes) / 4;
  if (config.may_split() && order.row_tiles == 1 && tiles <= kMostTiles) {
    order.splits = choose_splits(tiles, (keys + config.block_keys - 1) / config.block_keys,
                                 int64_t{multiprocessors} * config.blocks_per_sm);
  }
  plan.most_units = tiles * order.splits;
  plan.state_bytes = kCounterBytes + (order.splits > 1 ? tiles * 4 : 0);
  plan.partial_rows = order.splits > 1 ? plan.most_units * rows : 0;
  plan.value_columns = config.value_dim;
  plan.scratch_bytes = plan.partial_rows * (config.value_dim + 1) * 4;
}

}  // namespace

bool make_plan(const ks_attention_fwd_shape& s, int multiprocessors, Plan& plan) {
  if (!is_handled(s)) return false;
  plan_problem(s, plan.params.problem);
  const ForwardShape shape = choose_shape({.key_dim = s.key_dim,
                                           .value_dim = s.value_dim,
                                           .rows_per_group = s.max_rows * (s.query_heads / s.kv_heads),
                                           .ratio = s.query_heads / s.kv_heads,
                                           .masked = plan.params.problem.window_left != attention::kUnlimited ||
                                                     plan.params.problem.window_right != attention::kUnlimited,
                                           .gathers = s.kv_layout == KS_KV_PAGED && s.page_size % 8 != 0,
                                           .visible_keys = average_visible(s, plan.params.problem)});
  if (shape == ForwardShape::kNone) return false;
  plan.type = s.query_dtype == KS_BF16 ? Element::kBf16 : Element::kF16;
  const ForwardConfig config = config_of(shape, plan.type, s.softcap > 0.0f);
  plan.kernel = kernel_index(shape, plan.type, config.softcap);
  plan.blocks_per_sm = config.blocks_per_sm;
  plan_order(s, config, plan);
  plan_splits(s, config, multiprocessors, plan);
  ForwardTerms& params = plan.params;
  const bool paged = s.kv_layout == KS_KV_PAGED;
  params.granule = paged ? std::gcd(s.page_size, config.block_keys) : config.block_keys;
  params.page_shift = std::has_single_bit(static_cast<unsigned>(s.page_size))
                          ? std::countr_zero(static_cast<unsigned>(s.page_size))
                          : -1;
  params.origin_step = paged ? params.granule : 1;
  params.gathers = paged && s.page_size % 8 != 0 && config.may_gather();
  params.key_strides = {2 * s.key_batch_stride, 2 * s.key_row_stride, 2 * s.key_head_stride, s.key_dim};
  params.value_strides = {2 * s.value_batch_stride, 2 * s.value_row_stride, 2 * s.value_head_stride, s.value_dim};
  params.key_policy = params.order.row_tiles > 1 ? ptx::kEvictLast : ptx::kEvictFirst;  // are they read again?
  params.stores_boxes = 16 % params.problem.ratio == 0;
  const int slabs = (config.key_dim + 63) / 64;
  params.query_bytes = slabs * 128 * params.order.positions_per_tile * params.problem.ratio;
  params.cap_scale = config.softcap ? s.scale / s.softcap : 0.0f;
  params.scale_log2 = (config.softcap ? s.softcap : s.scale) * attention::kLog2E;
  params.ratio_reciprocal = 65536u / static_cast<uint32_t>(params.problem.ratio) + 1;
  plan_maps(s, plan);
  return true;
}

}  // namespace ks::fa3
