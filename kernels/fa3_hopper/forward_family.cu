// The forward family: prefill, and every 16-bit call that no other family takes. Fills pointers into a plan, encodes
// four tensor maps and launches one kernel.
#include <utility>

#include "kernels/fa3_hopper/device.h"
#include "kernels/fa3_hopper/family.h"
#include "kernels/fa3_hopper/launch.cuh"
#include "kernels/fa3_hopper/plan.h"

namespace ks::fa3 {
namespace {

using Launch = cudaError_t (*)(const ForwardParams&, int, cudaStream_t);

template <int... kIndices>
constexpr auto table_of(std::integer_sequence<int, kIndices...>) {
  // Index: (shape * 2 + type) * 2 + softcap, as kernel_index() in plan.h.
  struct Table {
    Launch launch[sizeof...(kIndices)];
  };
  return Table{{&launch_forward<static_cast<ForwardShape>(kIndices / 4), static_cast<Element>(kIndices / 2 % 2),
                                kIndices % 2 != 0>...}};
}
constexpr auto kKernels = table_of(std::make_integer_sequence<int, 4 * kShapeCount>{});

void set_pointers(attention::AttentionProblem& problem, const ks_attention_fwd_call& call) {
  problem.cu_rows = call.cu_rows;
  problem.cu_keys = call.cu_keys;
  problem.key_lengths = call.key_lengths;
  problem.page_table = call.page_table;
  problem.sinks = call.sinks;
  problem.output = call.output;
  problem.lse = call.lse;
}

bool plan_forward(const ks_attention_fwd_shape& shape, int multiprocessors, void* plan, ks_buffer_sizes& sizes) {
  static_assert(sizeof(Plan) <= kFamilyPlanBytes && alignof(Plan) <= 64);
  Plan& filled = *static_cast<Plan*>(plan);
  if (!make_plan(shape, multiprocessors, filled)) return false;
  sizes = {filled.scratch_bytes, filled.state_bytes, 0};
  return true;
}

bool launch_planned(const ks_attention_fwd_call& call, const void* planned) {
  const Plan& plan = *static_cast<const Plan*>(planned);
  if (plan.most_units == 0) return true;  // no rows at all
  const int device = call.context.device;

  ForwardParams params;
  static_cast<ForwardTerms&>(params) = plan.params;
  set_pointers(params.problem, call);
  params.key = call.key;
  params.value = call.value;
  params.counters = static_cast<ks::attention::TileCounters*>(call.context.state);
  params.arrivals = reinterpret_cast<int32_t*>(static_cast<char*>(call.context.state) + kCounterBytes);
  params.partial_output = static_cast<float*>(call.context.scratch);
  params.partial_lse = params.partial_output + plan.partial_rows * plan.value_columns;
  const auto type = plan.type == Element::kBf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  if (!encode_map(params.query_map, plan.query, type, call.query, nullptr) ||
      !encode_map(params.key_map, plan.key, type, call.key, call.query) ||
      !encode_map(params.value_map, plan.value, type, call.value, call.query) ||
      !encode_map(params.output_map, plan.output, type, call.output, nullptr)) {
    return false;
  }
  const Launch launch = kKernels.launch[plan.kernel];
  static OnceADevice allowed[4 * kShapeCount];
  if (!allowed[plan.kernel].run(device, [&] { return launch(params, 0, nullptr) == cudaSuccess; })) return false;
  const int64_t places = int64_t{multiprocessors(device)} * plan.blocks_per_sm;
  const int blocks = static_cast<int>(plan.most_units < places ? plan.most_units : places);
  return launch(params, blocks, static_cast<cudaStream_t>(call.context.stream)) == cudaSuccess;
}

}  // namespace

const Family kForwardFamily = {"forward", plan_forward, launch_planned};

}  // namespace ks::fa3
