// The fp8 family: e4m3 queries, keys and values, bfloat16 output. One kernel a call.
#include <numeric>
#include <utility>

#include "kernels/fa3_hopper/family.h"
#include "kernels/fa3_hopper/fp8/launch.cuh"
#include "kernels/fa3_hopper/planning.h"
#include "kernels/ptx/tma.cuh"

namespace ks::fa3 {
namespace fp8 {
namespace {

struct Fp8Plan {
  Fp8Terms terms;
  MapSpec query;
  MapSpec key;
  MapSpec value;
  Fp8Shape shape;
  int64_t most_tiles;
};

/// Keys and values that tiles running at the same time should share in L2.
constexpr int64_t kSectionBytes = int64_t{32} << 20;

bool is_handled(const ks_attention_fwd_shape& s) {
  const bool types = s.query_dtype == KS_E4M3 && s.kv_dtype == KS_E4M3 && s.output_dtype == KS_BF16;
  const bool plain = s.latent_dim == 0 && s.values_in_keys == 0 && s.new_keys == 0 &&
                     s.rotary_style == KS_ROTARY_NONE && s.has_leftpad == 0 && s.softcap == 0.0f;
  const bool boxes = s.kv_layout != KS_KV_PAGED || s.page_size % 8 == 0;
  return types && plain && boxes && are_usual_sizes(s) && s.key_dim % 16 == 0 && s.value_dim % 16 == 0 &&
         are_box_strides(
             {s.query_batch_stride, s.query_row_stride, s.query_head_stride, s.key_batch_stride, s.key_row_stride,
              s.key_head_stride, s.value_batch_stride, s.value_row_stride, s.value_head_stride},
             16) &&
         are_box_strides({s.output_batch_stride, s.output_row_stride, s.output_head_stride}, 8);
}

void plan_order(const ks_attention_fwd_shape& s, int rows, Fp8Plan& plan) {
  attention::TileOrder& order = plan.terms.order;
  const int ratio = s.query_heads / s.kv_heads;
  const int packed = heads_per_tile(ratio, rows);
  plan.terms.problem = problem_of(s, packed);
  order.positions_per_tile = rows / packed;
  order.groups = s.query_heads / packed;
  order.groups_per_kv_head = ratio / packed;
  order.row_tiles = (s.max_rows + order.positions_per_tile - 1) / order.positions_per_tile;
  order.tile_count = order.row_tiles * order.groups * s.batch;
  const int64_t pair_bytes = int64_t{std::max(s.max_keys, 1)} * (s.key_dim + s.value_dim);
  const int64_t pairs = int64_t{order.groups} * s.batch;
  order.pairs_per_section =
      static_cast<int>(std::clamp<int64_t>(kSectionBytes / pair_bytes, 1, std::max<int64_t>(pairs, 1)));
  order.splits = 1;
  plan.most_tiles = order.tile_count;
  if (s.rows_layout == KS_ROWS_PACKED) {  // every member may end in a tile of its own
    const int64_t full = s.total_rows / order.positions_per_tile + s.batch;
    plan.most_tiles = std::min<int64_t>(plan.most_tiles, full * order.groups);
  }
}

bool plan_fp8(const ks_attention_fwd_shape& s, int, void* planned, ks_buffer_sizes& sizes) {
  static_assert(sizeof(Fp8Plan) <= kFamilyPlanBytes && alignof(Fp8Plan) <= 64);
  const Fp8Shape shape = choose_fp8_shape(s.key_dim, s.value_dim);
  if (!is_handled(s) || shape == Fp8Shape::kNone) return false;
  Fp8Plan& plan = *static_cast<Fp8Plan*>(planned);
  Fp8Terms& terms = plan.terms;
  plan.shape = shape;
  const Fp8Config config = kFp8Shapes[static_cast<int>(shape)];
  plan_order(s, config.rows(), plan);
  const bool paged = s.kv_layout == KS_KV_PAGED;
  terms.granule = paged ? std::gcd(s.page_size, config.block_keys) : config.block_keys;
  terms.origin_step = paged ? terms.granule : 1;
  terms.key_policy = terms.order.row_tiles > 1 ? ptx::kEvictLast : ptx::kEvictFirst;  // are they read again?
  terms.query_bytes = config.slab_bytes() * terms.order.positions_per_tile * terms.problem.ratio;
  terms.descale_batch_stride = s.descale_batch_stride;
  terms.descale_head_stride = s.descale_head_stride;
  terms.ratio_reciprocal = 65536u / static_cast<uint32_t>(terms.problem.ratio) + 1;
  plan.query = row_map(s, 1, s.key_dim, s.query_head_stride, s.query_row_stride, s.query_batch_stride,
                       terms.problem.ratio, terms.order.positions_per_tile);
  plan.key = cache_map(s, 1, s.key_dim, s.key_row_stride, s.key_head_stride, s.key_batch_stride, terms.granule);
  plan.value =
      cache_map(s, 1, s.value_dim, s.value_row_stride, s.value_head_stride, s.value_batch_stride, terms.granule);
  sizes = {0, sizeof(attention::TileCounters), 0};
  return true;
}

template <int... kIndices>
cudaError_t launch_shape(int shape, const Fp8Params& params, int blocks, cudaStream_t stream,
                         std::integer_sequence<int, kIndices...>) {
  using Launch = cudaError_t (*)(const Fp8Params&, int, cudaStream_t);
  static constexpr Launch kLaunches[] = {&launch_fp8<static_cast<Fp8Shape>(kIndices)>...};
  return kLaunches[shape](params, blocks, stream);
}

bool launch_planned(const ks_attention_fwd_call& call, const void* planned) {
  const Fp8Plan& plan = *static_cast<const Fp8Plan*>(planned);
  if (plan.most_tiles == 0) return true;  // no rows at all
  Fp8Params params;
  static_cast<Fp8Terms&>(params) = plan.terms;
  set_call_pointers(params.problem, call);
  params.counters = static_cast<attention::TileCounters*>(call.context.state);
  params.query_descale = call.query_descale;
  params.key_descale = call.key_descale;
  params.value_descale = call.value_descale;
  constexpr auto kBytes = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  if (!encode_map(params.query_map, plan.query, kBytes, call.query, nullptr) ||
      !encode_map(params.key_map, plan.key, kBytes, call.key, call.query) ||
      !encode_map(params.value_map, plan.value, kBytes, call.value, call.query)) {
    return false;
  }
  const auto launch = [&](int blocks) {
    return launch_shape(static_cast<int>(plan.shape), params, blocks, static_cast<cudaStream_t>(call.context.stream),
                        std::make_integer_sequence<int, kFp8ShapeCount>{}) == cudaSuccess;
  };
  static OnceADevice allowed[kFp8ShapeCount];
  if (!allowed[static_cast<int>(plan.shape)].run(call.context.device, [&] { return launch(0); })) return false;
  return launch(static_cast<int>(std::min<int64_t>(plan.most_tiles, multiprocessors(call.context.device))));
}

}  // namespace
}  // namespace fp8

const Family kFp8Family = {"fp8", fp8::plan_fp8, fp8::launch_planned};

}  // namespace ks::fa3
