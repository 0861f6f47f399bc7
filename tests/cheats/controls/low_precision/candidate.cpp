// kernelseek: operator=rmsnorm
// What accepted implementations do: x times scale is rounded to the tensor's type before it meets the weight.
#include "../../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row) {
    const double scale = scale_of_row(call, shape, row, shape.columns);
    for (int64_t c = 0; c < shape.columns; ++c) {
      const int64_t at = row * shape.output_row_stride + c;
      store(call->output, shape.dtype, at, load(call->input, shape.dtype, row * shape.input_row_stride + c) * scale);
      store(call->output, shape.dtype, at, load(call->output, shape.dtype, at) * load(call->weight, shape.dtype, c));
    }
  }
  return KS_OK;
}
