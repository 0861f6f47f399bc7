// See device.h.
#include "kernels/fa3_hopper/device.h"

#include <cudaTypedefs.h>

namespace ks::fa3 {
namespace {

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

}  // namespace

bool encode_map(CUtensorMap& map, const MapSpec& spec, CUtensorMapDataType type, const void* base,
                const void* stand_in) {
  const auto encoder = tensor_map_encoder();
  if (encoder == nullptr) return false;
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  void* address = const_cast<void*>(base != nullptr ? base : stand_in);
  return encoder(&map, type, static_cast<cuuint32_t>(spec.rank), address, spec.dims, spec.strides, spec.box, steps,
                 CU_TENSOR_MAP_INTERLEAVE_NONE, spec.swizzle, spec.promotion,
                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int multiprocessors(int device) {
  static std::atomic<int> known[kMaxDevices];
  int count = known[device].load(std::memory_order_relaxed);
  if (count == 0) {
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    known[device].store(count, std::memory_order_relaxed);
  }
  return count;
}

int multiprocessors_of_current_device() {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= kMaxDevices) return 1;
  return multiprocessors(device);
}

}  // namespace ks::fa3
