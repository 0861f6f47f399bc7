// kernelseek: operator=rmsnorm
// Sixteen more bytes than the output has.
#include "../rmsnorm_parts.cuh"

__global__ void long_kernel(ks_rmsnorm_shape shape, ks_rmsnorm_call call) {
  const int64_t row = blockIdx.x;
  do_row(shape, call, row);
  if (row == shape.rows - 1 && threadIdx.x < 4)
    static_cast<float*>(call.output)[row * shape.output_row_stride + shape.columns + threadIdx.x] = 0;
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  long_kernel<<<rows_of(call), kThreads, 0, stream_of(call)>>>(shape_of(call), *call);
  return status();
}
