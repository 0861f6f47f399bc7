// The decode family: few query rows a (member, kv head). Fills pointers into a plan, encodes three tensor maps and
// launches one kernel.
#include <utility>

#include "kernels/fa3_hopper/decode/decode_launch.cuh"
#include "kernels/fa3_hopper/decode/decode_plan.h"
#include "kernels/fa3_hopper/family.h"

namespace ks::fa3 {
namespace {

using Launch = cudaError_t (*)(const DecodeParams&, int, cudaStream_t);

template <int kIndex>
constexpr Launch launch_of() {
  constexpr int kShape = kIndex / 4;
  constexpr int kRows = 8 * kDecodeTiles[kShape % kDecodeTileCount];
  if constexpr (decode_shape(kDecodeDims[kShape / kDecodeTileCount], kRows) != kShape)
    return nullptr;
  else
    return &launch_decode<kShape, static_cast<Element>(kIndex / 2 % 2), kIndex % 2 != 0>;
}

struct Table {
  Launch launch[4 * kDecodeShapeCount];
};
template <int... kIndices>
constexpr Table table_of(std::integer_sequence<int, kIndices...>) {
  return Table{{launch_of<kIndices>()...}};  // index: decode_kernel_index() in decode_plan.h
}
constexpr Table kKernels = table_of(std::make_integer_sequence<int, 4 * kDecodeShapeCount>{});

bool plan_decode(const ks_attention_fwd_shape& shape, int multiprocessors, void* plan, ks_buffer_sizes& sizes) {
  static_assert(sizeof(DecodePlan) <= kFamilyPlanBytes && alignof(DecodePlan) <= 64);
  DecodePlan& filled = *static_cast<DecodePlan*>(plan);
  if (!make_decode_plan(shape, multiprocessors, filled)) return false;
  sizes = {filled.scratch_bytes, filled.state_bytes, 0};
  return true;
}

void set_pointers(const ks_attention_fwd_call& call, const DecodePlan& plan, DecodeParams& params) {
  params.problem.cu_rows = call.cu_rows;
  params.problem.cu_keys = call.cu_keys;
  params.problem.key_lengths = call.key_lengths;
  params.problem.page_table = call.page_table;
  params.problem.sinks = call.sinks;
  params.problem.output = call.output;
  params.problem.lse = call.lse;
  params.key = call.key;
  params.value = call.value;
  params.leftpad = call.leftpad;
  params.key_descale = call.key_descale;
  params.value_descale = call.value_descale;
  params.arrivals = static_cast<int32_t*>(call.context.state);
  params.partial_output = static_cast<float*>(call.context.scratch);
  params.partial_stats = params.partial_output + plan.partial_rows * plan.columns;
}

bool launch_planned(const ks_attention_fwd_call& call, const void* planned) {
  const DecodePlan& plan = *static_cast<const DecodePlan*>(planned);
  DecodeParams params;
  static_cast<DecodeTerms&>(params) = plan.params;
  set_pointers(call, plan, params);
  const auto type = plan.type == Element::kBf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const auto kv_type = plan.e4m3 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : type;
  if (!encode_map(params.query_map, plan.query, type, call.query, nullptr) ||
      !encode_map(params.key_map, plan.key, kv_type, call.key, call.query) ||
      !encode_map(params.value_map, plan.value, kv_type, call.value, call.query)) {
    return false;
  }
  const Launch launch = kKernels.launch[plan.kernel];
  static OnceADevice allowed[4 * kDecodeShapeCount];
  if (!allowed[plan.kernel].run(call.context.device, [&] { return launch(params, 0, nullptr) == cudaSuccess; })) {
    return false;
  }
  return launch(params, plan.blocks, static_cast<cudaStream_t>(call.context.stream)) == cudaSuccess;
}

}  // namespace

const Family kDecodeFamily = {"decode", plan_decode, launch_planned};

}  // namespace ks::fa3
