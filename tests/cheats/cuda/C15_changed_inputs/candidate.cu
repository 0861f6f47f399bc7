// kernelseek: operator=rmsnorm
// Device memory has no read-only mapping: only looking afterwards tells.
#include "../rmsnorm_parts.cuh"

__global__ void overwriting_kernel(ks_rmsnorm_shape shape, ks_rmsnorm_call call) {
  const int64_t row = blockIdx.x;
  do_row(shape, call, row);
  __syncthreads();
  for (int c = threadIdx.x; c < shape.columns; c += kThreads)
    store(const_cast<void*>(call.input), shape.dtype, row * shape.input_row_stride + c,
          load(call.output, shape.dtype, row * shape.output_row_stride + c));
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  overwriting_kernel<<<rows_of(call), kThreads, 0, stream_of(call)>>>(shape_of(call), *call);
  return status();
}
