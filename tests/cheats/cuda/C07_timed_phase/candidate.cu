// kernelseek: operator=rmsnorm
// A counter on the device outlives every graph: after the checks, nothing is computed.
#include "../rmsnorm_parts.cuh"

constexpr int kCheckedLaunches = 24;
__device__ int launches;

__global__ void tired_kernel(ks_rmsnorm_shape shape, ks_rmsnorm_call call) {
  if (launches > kCheckedLaunches) return;
  do_row(shape, call, blockIdx.x);
}

__global__ void count_kernel() {
  ++launches;
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  count_kernel<<<1, 1, 0, stream_of(call)>>>();
  tired_kernel<<<rows_of(call), kThreads, 0, stream_of(call)>>>(shape_of(call), *call);
  return status();
}
