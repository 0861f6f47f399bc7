// The MLA family: latent caches of 576 columns whose first 512 are the values. One kernel a call.
#include <numeric>

#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/fa3_hopper/family.h"
#include "kernels/fa3_hopper/mla/mla.cuh"
#include "kernels/fa3_hopper/planning.h"

namespace ks::fa3 {
namespace mla {
namespace {

constexpr int kEarlySlabs = 3;   // measured: 0 to 4 within 2 %, 3 the fastest
constexpr int kMostCluster = 2;  // measured: keys brought once for two tiles take 28 % off a long call

struct MlaPlan {
  MlaTerms terms;
  MapSpec latent;
  MapSpec rope;
  MapSpec key;
  Element type;
  int cluster;
};

bool is_handled(const ks_attention_fwd_shape& s) {
  const bool latent = s.latent_dim == kValueDim && s.values_in_keys == 1 && s.key_dim == kKeyDim &&
                      s.value_dim == kValueDim && s.kv_heads == 1;
  const bool types = (s.query_dtype == KS_BF16 || s.query_dtype == KS_F16) && s.kv_dtype == s.query_dtype &&
                     s.output_dtype == s.query_dtype;
  const bool plain = s.new_keys == 0 && s.rotary_style == KS_ROTARY_NONE && s.has_leftpad == 0 && s.has_sinks == 0 &&
                     s.softcap == 0.0f;
  const bool boxes = s.kv_layout != KS_KV_PAGED || s.page_size % 8 == 0;
  return latent && types && plain && boxes && are_usual_sizes(s) &&
         are_box_strides({s.query_batch_stride, s.query_row_stride, s.query_head_stride, s.query_latent_batch_stride,
                          s.query_latent_row_stride, s.query_latent_head_stride, s.key_batch_stride, s.key_row_stride,
                          s.output_batch_stride, s.output_row_stride, s.output_head_stride},
                         8);
}

void plan_maps(const ks_attention_fwd_shape& s, MlaPlan& plan) {
  const int heads = plan.terms.problem.ratio;
  const int positions = plan.terms.positions_per_tile;
  plan.latent = row_map(s, 2, kValueDim, s.query_latent_head_stride, s.query_latent_row_stride,
                        s.query_latent_batch_stride, heads, positions);
  plan.rope = row_map(s, 2, kKeyDim - kValueDim, s.query_head_stride, s.query_row_stride, s.query_batch_stride, heads,
                      positions);
  plan.key = cache_map(s, 2, kKeyDim, s.key_row_stride, s.key_head_stride, s.key_batch_stride, plan.terms.granule);
}

bool plan_mla(const ks_attention_fwd_shape& s, int multiprocessors, void* planned, ks_buffer_sizes& sizes) {
  static_assert(sizeof(MlaPlan) <= kFamilyPlanBytes && alignof(MlaPlan) <= 64);
  if (!is_handled(s)) return false;
  MlaPlan& plan = *static_cast<MlaPlan*>(planned);
  MlaTerms& terms = plan.terms;
  const int ratio = heads_per_tile(s.query_heads, kRows);
  terms.problem = problem_of(s, ratio);
  if (terms.problem.window_left != attention::kUnlimited) return false;
  plan.type = s.query_dtype == KS_BF16 ? Element::kBf16 : Element::kF16;
  terms.positions_per_tile = kRows / ratio;
  terms.groups = s.query_heads / ratio;
  plan.cluster = terms.groups % kMostCluster == 0 ? kMostCluster : 1;
  terms.granule = s.kv_layout == KS_KV_PAGED ? std::gcd(s.page_size, kBlockKeys) : kBlockKeys;
  const int row_tiles = divide_up(s.max_rows, terms.positions_per_tile);
  const int64_t units = int64_t{row_tiles} * (terms.groups / plan.cluster) * s.batch;
  const int64_t blocks = units * std::max(divide_up(s.max_keys, kBlockKeys), 1);
  if (blocks * 2 >= INT32_MAX) return false;  // the kernel counts them in 32 bits
  terms.workers = static_cast<int>(std::min<int64_t>(multiprocessors / plan.cluster, blocks));
  const int used_rows = std::min(s.max_rows, terms.positions_per_tile) * ratio;
  terms.sum_cost = std::max(16 * used_rows / kRows, 2);
  terms.query_bytes = kKeyDim * 2 * ratio * terms.positions_per_tile;
  const bool read_once = row_tiles == 1 && terms.groups == plan.cluster;
  terms.key_policy = read_once ? ptx::kEvictFirst : ptx::kEvictNormal;
  terms.scale_log2 = s.scale * attention::kLog2E;
  plan_maps(s, plan);
  const uint64_t partials = uint64_t{2} * terms.workers * plan.cluster;
  sizes = {partials * kRows * (kValueDim + 1) * sizeof(float), uint64_t{4} * terms.workers * plan.cluster, 0};
  return true;
}

template <Element kType, int kCluster>
cudaError_t launch_kernel(const MlaParams& params, int blocks, cudaStream_t stream) {
  const auto kernel = mla_forward_sm90<kType, kCluster, kEarlySlabs>;
  if (blocks == 0) return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Smem));
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kCluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = sizeof(Smem);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = kCluster > 1 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, params);
}

bool launch_mla(const ks_attention_fwd_call& call, const void* planned) {
  const MlaPlan& plan = *static_cast<const MlaPlan*>(planned);
  if (plan.terms.workers == 0) return true;  // no rows at all
  MlaParams params;
  static_cast<MlaTerms&>(params) = plan.terms;
  set_call_pointers(params.problem, call);
  const int64_t blocks = int64_t{plan.terms.workers} * plan.cluster;
  params.arrivals = static_cast<int32_t*>(call.context.state);
  params.partial_output = static_cast<float*>(call.context.scratch);
  params.partial_lse = params.partial_output + blocks * 2 * kRows * kValueDim;
  const auto type = plan.type == Element::kBf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  if (!encode_map(params.latent_map, plan.latent, type, call.query_latent, nullptr) ||
      !encode_map(params.rope_map, plan.rope, type, call.query, nullptr) ||
      !encode_map(params.key_map, plan.key, type, call.key, call.query_latent)) {
    return false;
  }
  using Launch = cudaError_t (*)(const MlaParams&, int, cudaStream_t);
  constexpr Launch kLaunches[] = {launch_kernel<Element::kBf16, 1>, launch_kernel<Element::kBf16, 2>,
                                  launch_kernel<Element::kF16, 1>, launch_kernel<Element::kF16, 2>};
  static OnceADevice allowed[4];
  const int kernel = (plan.type == Element::kBf16 ? 0 : 2) + plan.cluster - 1;
  const Launch launch = kLaunches[kernel];
  if (!allowed[kernel].run(call.context.device, [&] { return launch(params, 0, nullptr) == cudaSuccess; }))
    return false;
  return launch(params, static_cast<int>(blocks), static_cast<cudaStream_t>(call.context.stream)) == cudaSuccess;
}

}  // namespace
}  // namespace mla

const Family kMlaFamily = {"mla", mla::plan_mla, mla::launch_mla};

}  // namespace ks::fa3
