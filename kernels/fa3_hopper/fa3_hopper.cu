// Attention forward on Hopper: the candidate's four functions. ks_plan chooses a compiled kernel and computes all that
// needs no pointer; ks_run fills in pointers, encodes four tensor maps and launches one kernel.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "attention_fwd.h"
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

/// cuTensorMapEncodeTiled, found through the runtime so that nothing links against the driver.
PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  static const auto encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found == cudaDriverEntryPointSuccess ? function
                                                                                                    : nullptr);
  }();
  return encoder;
}

bool encode(CUtensorMap& map, const MapSpec& spec, Element type, const void* base, const void* stand_in) {
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  const auto data_type = type == Element::kBf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  void* address = const_cast<void*>(base != nullptr ? base : stand_in);  // an empty tensor may have no address
  return tensor_map_encoder()(&map, data_type, 4, address, spec.dims, spec.strides, spec.box, steps,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

constexpr int kMaxDevices = 64;

int multiprocessors(int device) {
  static std::atomic<int> known[kMaxDevices];
  int count = known[device].load(std::memory_order_relaxed);
  if (count == 0) {
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    known[device].store(count, std::memory_order_relaxed);
  }
  return count;
}

/// Allows the kernel its shared memory, once a device and kernel; threads may race here, the call is idempotent.
bool allow_shared_memory(int kernel, int device, const ForwardParams& params) {
  static std::atomic<uint64_t> done[4 * kShapeCount];
  const uint64_t bit = uint64_t{1} << device;
  if (done[kernel].load(std::memory_order_acquire) & bit) return true;
  if (kKernels.launch[kernel](params, 0, nullptr) != cudaSuccess) return false;
  done[kernel].fetch_or(bit, std::memory_order_release);
  return true;
}

int multiprocessors_of_current_device() {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= kMaxDevices) return 1;
  return multiprocessors(device);
}

void set_pointers(attention::AttentionProblem& problem, const ks_attention_fwd_call& call) {
  problem.cu_rows = call.cu_rows;
  problem.cu_keys = call.cu_keys;
  problem.key_lengths = call.key_lengths;
  problem.page_table = call.page_table;
  problem.sinks = call.sinks;
  problem.output = call.output;
  problem.lse = call.lse;
}

}  // namespace
}  // namespace ks::fa3

using namespace ks::fa3;

extern "C" ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  Plan plan;
  if (!make_plan(*shape, multiprocessors_of_current_device(), plan)) return KS_UNSUPPORTED;
  *sizes = {plan.scratch_bytes, plan.state_bytes, 0};
  return KS_OK;
}

extern "C" ks_status ks_plan(const ks_attention_fwd_shape* shape, void* plan) {
  static_assert(sizeof(Plan) <= KS_PLAN_BYTES && alignof(Plan) <= 64);
  const bool handled = make_plan(*shape, multiprocessors_of_current_device(), *static_cast<Plan*>(plan));
  return handled ? KS_OK : KS_UNSUPPORTED;
}

extern "C" ks_status ks_run(const ks_attention_fwd_call* call) {
  const Plan& plan = *static_cast<const Plan*>(call->context.plan);
  if (plan.most_units == 0) return KS_OK;  // no rows at all
  const int device = call->context.device;
  if (device < 0 || device >= kMaxDevices || tensor_map_encoder() == nullptr) return KS_FAILED;

  ForwardParams params;
  static_cast<ForwardTerms&>(params) = plan.params;
  set_pointers(params.problem, *call);
  params.key = call->key;
  params.value = call->value;
  params.counters = static_cast<ks::attention::TileCounters*>(call->context.state);
  params.arrivals = reinterpret_cast<int32_t*>(static_cast<char*>(call->context.state) + kCounterBytes);
  params.partial_output = static_cast<float*>(call->context.scratch);
  params.partial_lse = params.partial_output + plan.partial_rows * plan.value_columns;
  if (!encode(params.query_map, plan.query, plan.type, call->query, nullptr) ||
      !encode(params.key_map, plan.key, plan.type, call->key, call->query) ||
      !encode(params.value_map, plan.value, plan.type, call->value, call->query) ||
      !encode(params.output_map, plan.output, plan.type, call->output, nullptr)) {
    return KS_FAILED;
  }
  if (!allow_shared_memory(plan.kernel, device, params)) return KS_FAILED;
  const int64_t places = int64_t{multiprocessors(device)} * plan.blocks_per_sm;
  const int blocks = static_cast<int>(plan.most_units < places ? plan.most_units : places);
  const cudaError_t error =
      kKernels.launch[plan.kernel](params, blocks, static_cast<cudaStream_t>(call->context.stream));
  return error == cudaSuccess ? KS_OK : KS_FAILED;
}
