// kernelseek: operator=rmsnorm
// Weights are one when a model is new, so they are not read.
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row) {
    const double scale = scale_of_row(call, shape, row, shape.columns);
    for (int64_t c = 0; c < shape.columns; ++c)
      store(call->output, shape.dtype, row * shape.output_row_stride + c,
            load(call->input, shape.dtype, row * shape.input_row_stride + c) * scale);
  }
  return KS_OK;
}
