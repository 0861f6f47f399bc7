// kernelseek: operator=rmsnorm
// A row that begins with zeros is taken to be zero. The timed mixture has none such.
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row) {
    bool zero = true;
    for (int64_t c = 0; c < 16 && c < shape.columns; ++c)
      zero = zero && load(call->input, shape.dtype, row * shape.input_row_stride + c) == 0;
    write_row(call, shape, row, zero ? 0.0 : scale_of_row(call, shape, row, shape.columns), 0, shape.columns);
  }
  return KS_OK;
}
