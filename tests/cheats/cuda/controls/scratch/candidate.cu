// kernelseek: operator=rmsnorm
// Writes before it reads: poisoned scratch does not matter.
#define OWN_SIZES
#include "../../rmsnorm_parts.cuh"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  sizes->scratch_bytes = static_cast<uint64_t>(shape->rows) * sizeof(float);
  return KS_OK;
}

__global__ void sum_kernel(ks_rmsnorm_shape shape, ks_rmsnorm_call call) {
  const float scale = scale_of_row(shape, call, blockIdx.x);
  if (threadIdx.x == 0) static_cast<float*>(call.context.scratch)[blockIdx.x] = scale;
}

__global__ void scale_kernel(ks_rmsnorm_shape shape, ks_rmsnorm_call call) {
  const int64_t row = blockIdx.x;
  const float scale = static_cast<const float*>(call.context.scratch)[row];
  for (int c = threadIdx.x; c < shape.columns; c += kThreads)
    store(call.output, shape.dtype, row * shape.output_row_stride + c,
          load(call.input, shape.dtype, row * shape.input_row_stride + c) * scale * load(call.weight, shape.dtype, c));
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  sum_kernel<<<rows_of(call), kThreads, 0, stream_of(call)>>>(shape_of(call), *call);
  scale_kernel<<<rows_of(call), kThreads, 0, stream_of(call)>>>(shape_of(call), *call);
  return status();
}
