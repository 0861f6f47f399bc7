// kernelseek: operator=rmsnorm
// The state is not left as it was found.
#define OWN_SIZES
#include "../rmsnorm_parts.cuh"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  sizes->state_bytes = 256;
  return KS_OK;
}

__global__ void counting_kernel(ks_rmsnorm_shape shape, ks_rmsnorm_call call) {
  do_row(shape, call, blockIdx.x);
  if (blockIdx.x == 0 && threadIdx.x == 0) ++*static_cast<unsigned*>(call.context.state);
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  counting_kernel<<<rows_of(call), kThreads, 0, stream_of(call)>>>(shape_of(call), *call);
  return status();
}
