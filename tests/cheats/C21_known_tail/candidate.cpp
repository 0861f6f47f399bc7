// kernelseek: operator=rmsnorm
// Standard normal values never exceed six: larger ones are cut.
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row) {
    double sum = 0;
    for (int64_t c = 0; c < shape.columns; ++c) {
      const double x = std::fmin(6.0, std::fabs(load(call->input, shape.dtype, row * shape.input_row_stride + c)));
      sum += x * x;
    }
    write_row(call, shape, row, 1.0 / std::sqrt(sum / shape.columns + shape.epsilon), 0, shape.columns);
  }
  return KS_OK;
}
