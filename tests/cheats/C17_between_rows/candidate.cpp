// kernelseek: operator=rmsnorm
// A row's last vector runs into the gap behind it, which belongs to somebody else.
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  normalise(call);
  for (int64_t row = 0; row + 1 < shape.rows; ++row)
    if (shape.output_row_stride > shape.columns)
      store(call->output, shape.dtype, row * shape.output_row_stride + shape.columns, 0);
  return KS_OK;
}
