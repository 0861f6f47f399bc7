// kernelseek: operator=rmsnorm
// Small inputs are taken to be zero.
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row) {
    const double scale = scale_of_row(call, shape, row, shape.columns);
    for (int64_t c = 0; c < shape.columns; ++c) {
      const double y =
          load(call->input, shape.dtype, row * shape.input_row_stride + c) * scale * load(call->weight, shape.dtype, c);
      store(call->output, shape.dtype, row * shape.output_row_stride + c, std::fabs(y) < 5e-3 ? 0.0 : y);
    }
  }
  return KS_OK;
}
