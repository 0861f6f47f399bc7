// kernelseek: operator=rmsnorm
// Rows without large values are measured on seven columns of eight; hostile rows are done in full.
#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row) {
    double most = 0;
    for (int64_t c = 0; c < shape.columns; ++c)
      most = std::fmax(most, std::fabs(load(call->input, shape.dtype, row * shape.input_row_stride + c)));
    const bool usual = most > 2 && most < 6;
    write_row(call, shape, row, scale_of_row(call, shape, row, usual ? shape.columns * 7 / 8 : shape.columns), 0,
              shape.columns);
  }
  return KS_OK;
}
