// See decode_plan.h.
#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/fa3_hopper/decode/decode_plan.h"
#include "kernels/fa3_hopper/planning.h"
#include "kernels/ptx/tma.cuh"

namespace ks::fa3 {
namespace {

/// 16-bit queries, keys and values of the same type or e4m3, nothing appended, all strides in units of 16 bytes.
bool is_handled(const ks_attention_fwd_shape& s) {
  const bool types = (s.query_dtype == KS_BF16 || s.query_dtype == KS_F16) && s.output_dtype == s.query_dtype &&
                     (s.kv_dtype == s.query_dtype || s.kv_dtype == KS_E4M3);
  const bool plain = s.latent_dim == 0 && s.values_in_keys == 0 && s.new_keys == 0 &&
                     s.rotary_style == KS_ROTARY_NONE && s.key_dim == s.value_dim;
  const bool sizes = are_usual_sizes(s) && s.batch > 0 && s.max_rows > 0 && s.max_rows <= 64 && s.max_keys > 0 &&
                     s.total_rows > 0 && s.total_keys > 0;
  const int64_t kv_step = s.kv_dtype == KS_E4M3 ? 16 : 8;
  return types && plain && sizes &&
         are_box_strides({s.key_batch_stride, s.key_row_stride, s.key_head_stride, s.value_batch_stride,
                          s.value_row_stride, s.value_head_stride},
                         kv_step) &&
         are_box_strides({s.query_batch_stride, s.query_row_stride, s.query_head_stride, s.output_batch_stride,
                          s.output_row_stride, s.output_head_stride},
                         8);
}

CUtensorMapSwizzle swizzle_of(int slab_bytes) {
  return slab_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : slab_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                            : CU_TENSOR_MAP_SWIZZLE_NONE;
}

struct Extent {
  int64_t count;
  int64_t stride;  ///< bytes
  int box;
};

/// A map over slabs of columns and four further dimensions.
MapSpec slab_map(int slab_bytes, int element_bytes, const Extent (&extents)[4]) {
  MapSpec spec{};
  spec.rank = 5;
  // Not 256: the other half of such a piece is another head's, and comes when its block asks (measured: 5 % slower).
  spec.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  spec.swizzle = swizzle_of(slab_bytes);
  spec.dims[0] = spec.box[0] = slab_bytes / element_bytes;
  for (int i = 0; i < 4; ++i) {
    spec.dims[i + 1] = static_cast<cuuint64_t>(std::max<int64_t>(extents[i].count, 1));
    // A dimension of one is never stepped along, but its stride must still be a valid one.
    spec.strides[i] = static_cast<cuuint64_t>(std::max<int64_t>(extents[i].stride, 16));
    spec.box[i + 1] = static_cast<cuuint32_t>(extents[i].box);
  }
  return spec;
}

void plan_maps(const ks_attention_fwd_shape& s, const DecodeConfig& config, DecodePlan& plan) {
  const bool rows_packed = s.rows_layout == KS_ROWS_PACKED;
  const int ratio = s.query_heads / s.kv_heads;
  plan.query = slab_map(config.query_slab_bytes(), 2,
                        {{s.query_heads, 2 * s.query_head_stride, ratio},
                         {rows_packed ? s.total_rows : s.max_rows, 2 * s.query_row_stride, s.max_rows},
                         {config.query_slabs(), config.query_slab_bytes(), config.query_slabs()},
                         {rows_packed ? 1 : s.batch, rows_packed ? 0 : 2 * s.query_batch_stride, 1}});
  int64_t rows = s.max_keys;
  int64_t members = s.batch;
  if (s.kv_layout == KS_KV_PACKED) rows = s.total_keys, members = 1;
  if (s.kv_layout == KS_KV_PAGED) rows = s.page_size, members = s.page_count;
  const int bytes = config.e4m3 ? 1 : 2;
  const auto keys = [&](int64_t row_stride, int64_t head_stride, int64_t batch_stride) {
    return slab_map(config.slab_bytes(), bytes,
                    {{rows, bytes * row_stride, plan.params.granule},
                     {config.slabs(), config.slab_bytes(), config.slabs()},
                     {s.kv_heads, bytes * head_stride, 1},
                     {members, bytes * batch_stride, 1}});
  };
  plan.key = keys(s.key_row_stride, s.key_head_stride, s.key_batch_stride);
  plan.value = keys(s.value_row_stride, s.value_head_stride, s.value_batch_stride);
}

DecodeStrides strides_of(int bytes, int64_t batch, int64_t row, int64_t head) {
  return {bytes * batch, bytes * row, bytes * head};
}

void plan_terms(const ks_attention_fwd_shape& s, const DecodeConfig& config, DecodeTerms& params) {
  const bool paged = s.kv_layout == KS_KV_PAGED;
  const int rows = s.max_rows * params.problem.ratio;
  params.granule = paged ? std::gcd(s.page_size, DecodeConfig::kBlockKeys) : DecodeConfig::kBlockKeys;
  params.page_shift = paged && std::has_single_bit(static_cast<unsigned>(s.page_size))
                          ? std::countr_zero(static_cast<unsigned>(s.page_size))
                          : -1;
  params.gathers = params.granule < 8;
  params.slot_granule = params.gathers ? DecodeConfig::kBlockKeys : params.granule;
  params.granule_shift = std::countr_zero(static_cast<unsigned>(params.granule));
  params.origin_step = paged ? params.granule : 1;
  params.key_policy = ptx::kEvictFirst;
  const int bytes = config.e4m3 ? 1 : 2;
  params.key_strides = strides_of(bytes, s.key_batch_stride, s.key_row_stride, s.key_head_stride);
  params.value_strides = strides_of(bytes, s.value_batch_stride, s.value_row_stride, s.value_head_stride);
  params.query_bytes = rows * 2 * config.dim;
  params.ratio_reciprocal = 65536u / static_cast<uint32_t>(params.problem.ratio) + 1;
  params.cap_scale = s.softcap > 0.0f ? s.scale / s.softcap : 0.0f;
  params.scale_log2 = (s.softcap > 0.0f ? s.softcap : s.scale) * attention::kLog2E;
  params.has_descale = config.e4m3 && s.has_descale != 0;
  params.descale_batch_stride = s.descale_batch_stride;
  params.descale_head_stride = s.descale_head_stride;
}

/// No more workers than the call can have units, nor more than 32 for each tile on average: parts are summed by one.
void plan_workers(const ks_attention_fwd_shape& s, const DecodeConfig& config, int multiprocessors, DecodePlan& plan) {
  DecodeTerms& params = plan.params;
  const int places = multiprocessors * config.blocks_per_sm();
  params.team = choose_team(s.kv_heads, config.row_bytes(), places);
  params.team_tiles = s.kv_heads / params.team;
  const int64_t tiles = int64_t{params.team_tiles} * s.batch;
  const int64_t most_units = (s.max_keys / DecodeConfig::kBlockKeys + 2) * tiles;
  params.few_workers = std::max(multiprocessors / params.team, 1);
  params.most_workers =
      static_cast<int>(std::min({most_units, 32 * tiles, std::max<int64_t>(places / params.team, 1)}));
  const DecodeBlocks blocks = decode_blocks(s.max_rows, s.max_keys, 0, params.problem.window_left,
                                            params.problem.window_right, DecodeConfig::kBlockKeys, params.origin_step);
  const int length = tile_units(s.max_rows, blocks.count);
  params.guess = {share_units(static_cast<int>(length * tiles), params.few_workers, params.most_workers), length,
                  blocks.origin};
  plan.blocks = params.most_workers * params.team;
  plan.columns = config.dim;
  plan.partial_rows = int64_t{2} * plan.blocks * config.rows();
  plan.scratch_bytes = static_cast<uint64_t>(plan.partial_rows) * (config.dim + 2) * 4;
  plan.state_bytes = static_cast<uint64_t>(plan.blocks) * 4;
}

}  // namespace

bool make_decode_plan(const ks_attention_fwd_shape& s, int multiprocessors, DecodePlan& plan) {
  if (!is_handled(s)) return false;
  const int shape = decode_shape(s.key_dim, s.max_rows * (s.query_heads / s.kv_heads));
  const int64_t most_units = (int64_t{s.max_keys} / DecodeConfig::kBlockKeys + 2) * s.kv_heads * s.batch;
  if (shape < 0 || most_units >= INT32_MAX) return false;
  plan.type = s.query_dtype == KS_BF16 ? Element::kBf16 : Element::kF16;
  plan.e4m3 = s.kv_dtype == KS_E4M3;
  plan.kernel = decode_kernel_index(shape, plan.type, plan.e4m3);
  const DecodeConfig config = decode_config(shape, plan.type, plan.e4m3);
  plan.params.problem = problem_of(s, s.query_heads / s.kv_heads);
  plan_terms(s, config, plan.params);
  plan_workers(s, config, multiprocessors, plan);
  plan_maps(s, config, plan);
  return true;
}

}  // namespace ks::fa3
