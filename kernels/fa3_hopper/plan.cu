// See plan.h.
#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/fa3_hopper/plan.h"
#include "kernels/fa3_hopper/planning.h"
#include "kernels/ptx/tma.cuh"

namespace ks::fa3 {
namespace {

using attention::KeyLayout;

/// Keys and values that tiles running at the same time should share in L2.
constexpr int64_t kSectionBytes = int64_t{32} << 20;

/// The copy engine wants strides of 16 bytes; everything else that is missing is left to other kernels.
bool is_handled(const ks_attention_fwd_shape& s) {
  const bool types = (s.query_dtype == KS_BF16 || s.query_dtype == KS_F16) && s.kv_dtype == s.query_dtype &&
                     s.output_dtype == s.query_dtype;
  const bool plain = s.latent_dim == 0 && s.values_in_keys == 0 && s.new_keys == 0 &&
                     s.rotary_style == KS_ROTARY_NONE && s.has_leftpad == 0;
  const bool columns = s.key_dim % 8 == 0 && s.value_dim % 8 == 0;
  return types && plain && columns && are_usual_sizes(s) &&
         are_box_strides({s.query_batch_stride, s.query_row_stride, s.query_head_stride, s.key_batch_stride,
                          s.key_row_stride, s.key_head_stride, s.value_batch_stride, s.value_row_stride,
                          s.value_head_stride, s.output_batch_stride, s.output_row_stride, s.output_head_stride},
                         8);
}

void plan_maps(const ks_attention_fwd_shape& s, Plan& plan) {
  const ForwardTerms& params = plan.params;
  const int ratio = params.problem.ratio;
  plan.query = row_map(s, 2, s.key_dim, s.query_head_stride, s.query_row_stride, s.query_batch_stride, ratio,
                       params.order.positions_per_tile);
  plan.output = row_map(s, 2, s.value_dim, s.output_head_stride, s.output_row_stride, s.output_batch_stride,
                        params.stores_boxes ? ratio : 1, params.stores_boxes ? 16 / ratio : 1);
  plan.key = cache_map(s, 2, s.key_dim, s.key_row_stride, s.key_head_stride, s.key_batch_stride, params.granule);
  plan.value =
      cache_map(s, 2, s.value_dim, s.value_row_stride, s.value_head_stride, s.value_batch_stride, params.granule);
}

void plan_order(const ks_attention_fwd_shape& s, const ForwardConfig& config, Plan& plan) {
  attention::AttentionProblem& problem = plan.params.problem;
  attention::TileOrder& order = plan.params.order;
  const int ratio = s.query_heads / s.kv_heads;
  problem.ratio = heads_per_tile(ratio, config.rows());
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
  plan.params.problem = problem_of(s, 1);  // until the kernel is chosen
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
