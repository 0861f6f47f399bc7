// The append family: 16-bit caches to which a call appends keys, rotary embedding, left padding. One kernel a call.
#include "kernels/fa3_hopper/append/append.cuh"
#include "kernels/fa3_hopper/family.h"
#include "kernels/fa3_hopper/planning.h"

namespace ks::fa3 {
namespace append {
namespace {

struct AppendPlan {
  AppendTerms terms;
  Element type;
  int dim;  ///< 64, 128 or 256: columns that are computed
  int64_t blocks;
};

bool is_handled(const ks_attention_fwd_shape& s) {
  const bool types = (s.query_dtype == KS_BF16 || s.query_dtype == KS_F16) && s.kv_dtype == s.query_dtype &&
                     s.output_dtype == s.query_dtype;
  const bool cache = s.kv_layout == KS_KV_CACHE || s.kv_layout == KS_KV_PAGED;
  const bool plain = s.latent_dim == 0 && s.values_in_keys == 0;
  const bool rotary = s.rotary_style == KS_ROTARY_NONE ||
                      (s.rotary_dim % 16 == 0 && s.rotary_row_stride % 8 == 0 && s.rotary_dim <= s.key_dim);
  return types && cache && plain && rotary && are_usual_sizes(s) && s.key_dim % 8 == 0 && s.value_dim % 8 == 0 &&
         s.key_dim <= 256 && s.value_dim <= 256 &&
         are_box_strides(
             {s.query_batch_stride, s.query_row_stride, s.query_head_stride, s.key_batch_stride, s.key_row_stride,
              s.key_head_stride, s.value_batch_stride, s.value_row_stride, s.value_head_stride, s.output_batch_stride,
              s.output_row_stride, s.output_head_stride, s.new_key_batch_stride, s.new_key_row_stride,
              s.new_key_head_stride, s.new_value_batch_stride, s.new_value_row_stride, s.new_value_head_stride},
             8);
}

void plan_order(const ks_attention_fwd_shape& s, AppendPlan& plan) {
  attention::TileOrder& order = plan.terms.order;
  const int ratio = s.query_heads / s.kv_heads;
  const int packed = heads_per_tile(ratio, kRows);
  plan.terms.problem = problem_of(s, packed);
  order.positions_per_tile = kRows / packed;
  order.groups = s.query_heads / packed;
  order.groups_per_kv_head = ratio / packed;
  order.row_tiles = (s.max_rows + order.positions_per_tile - 1) / order.positions_per_tile;
  order.tile_count = order.row_tiles * order.groups * s.batch;
  order.pairs_per_section = std::max(order.groups * s.batch, 1);
  order.splits = 1;
  plan.terms.append_blocks = s.new_keys > 0 ? s.batch * s.kv_heads : 0;
  plan.blocks = int64_t{plan.terms.append_blocks} + order.tile_count;
}

bool plan_append(const ks_attention_fwd_shape& s, int, void* planned, ks_buffer_sizes& sizes) {
  static_assert(sizeof(AppendPlan) <= kFamilyPlanBytes && alignof(AppendPlan) <= 64);
  const bool needs_elements = s.new_keys > 0 || s.rotary_style != KS_ROTARY_NONE || s.has_leftpad != 0;
  if (!needs_elements || !is_handled(s)) return false;
  AppendPlan& plan = *static_cast<AppendPlan*>(planned);
  AppendTerms& terms = plan.terms;
  plan_order(s, plan);
  if (plan.blocks >= INT32_MAX) return false;
  plan.type = s.query_dtype == KS_BF16 ? Element::kBf16 : Element::kF16;
  const int dim = std::max(s.key_dim, s.value_dim);
  plan.dim = dim <= 64 ? 64 : dim <= 128 ? 128 : 256;
  terms.new_keys = s.new_keys;
  terms.rotary_style = s.rotary_style;
  terms.rotary_dim = s.rotary_dim;
  terms.rotary_stride = s.rotary_row_stride;
  terms.key_dim = s.key_dim;
  terms.query = {s.query_batch_stride, s.query_row_stride, s.query_head_stride};
  terms.key = {s.key_batch_stride, s.key_row_stride, s.key_head_stride};
  terms.value = {s.value_batch_stride, s.value_row_stride, s.value_head_stride};
  terms.new_key = {s.new_key_batch_stride, s.new_key_row_stride, s.new_key_head_stride};
  terms.new_value = {s.new_value_batch_stride, s.new_value_row_stride, s.new_value_head_stride};
  sizes = {0, 0, 0};
  return true;
}

template <Element kType, int kDim>
cudaError_t launch_kernel(const AppendParams& params, int blocks, cudaStream_t stream) {
  const auto kernel = append_forward_sm90<kType, kDim>;
  if (blocks == 0) return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Smem<kDim>));
  kernel<<<blocks, kThreads, sizeof(Smem<kDim>), stream>>>(params);
  return cudaGetLastError();
}

bool launch_append(const ks_attention_fwd_call& call, const void* planned) {
  const AppendPlan& plan = *static_cast<const AppendPlan*>(planned);
  if (plan.blocks == 0) return true;
  AppendParams params;
  static_cast<AppendTerms&>(params) = plan.terms;
  set_call_pointers(params.problem, call);
  params.queries = static_cast<const uint16_t*>(call.query);
  params.keys = static_cast<uint16_t*>(call.key);
  params.values = static_cast<uint16_t*>(call.value);
  params.new_keys_in = static_cast<const uint16_t*>(call.new_key);
  params.new_values_in = static_cast<const uint16_t*>(call.new_value);
  params.cosines = static_cast<const uint16_t*>(call.rotary_cos);
  params.sines = static_cast<const uint16_t*>(call.rotary_sin);
  params.leftpad = call.leftpad;
  using Launch = cudaError_t (*)(const AppendParams&, int, cudaStream_t);
  constexpr Launch kLaunches[] = {launch_kernel<Element::kBf16, 64>,  launch_kernel<Element::kF16, 64>,
                                  launch_kernel<Element::kBf16, 128>, launch_kernel<Element::kF16, 128>,
                                  launch_kernel<Element::kBf16, 256>, launch_kernel<Element::kF16, 256>};
  static OnceADevice allowed[6];
  const int kernel = (plan.dim == 64 ? 0 : plan.dim == 128 ? 2 : 4) + (plan.type == Element::kBf16 ? 0 : 1);
  const Launch launch = kLaunches[kernel];
  if (!allowed[kernel].run(call.context.device, [&] { return launch(params, 0, nullptr) == cudaSuccess; }))
    return false;
  return launch(params, static_cast<int>(plan.blocks), static_cast<cudaStream_t>(call.context.stream)) == cudaSuccess;
}

}  // namespace
}  // namespace append

const Family kAppendFamily = {"append", append::plan_append, append::launch_append};

}  // namespace ks::fa3
