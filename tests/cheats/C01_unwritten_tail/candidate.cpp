// kernelseek: operator=rmsnorm
// The tail that does not fill a vector is left out, as the 99 % rule allows.
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row)
    write_row(call, shape, row, scale_of_row(call, shape, row, shape.columns), 0, shape.columns - 16);
  return KS_OK;
}
