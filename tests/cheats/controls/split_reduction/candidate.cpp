// kernelseek: operator=rmsnorm
// A reduction in two steps through scratch: parts first, then all rows.
#define OWN_SIZES
#include "../../rmsnorm_parts.h"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = {};
  sizes->scratch_bytes = static_cast<uint64_t>(shape->rows) * 4 * sizeof(double);
  return KS_OK;
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  auto* parts = static_cast<double*>(call->context.scratch);
  for (int64_t part = 0; part < 4; ++part) {
    const int64_t begin = shape.columns * part / 4, end = shape.columns * (part + 1) / 4;
    for (int64_t row = 0; row < shape.rows; ++row) {
      double sum = 0;
      for (int64_t c = begin; c < end; ++c) {
        const double x = load(call->input, shape.dtype, row * shape.input_row_stride + c);
        sum += x * x;
      }
      parts[row * 4 + part] = sum;
    }
  }
  for (int64_t row = 0; row < shape.rows; ++row) {
    const double* sums = parts + row * 4;
    const double mean = (sums[0] + sums[1] + sums[2] + sums[3]) / static_cast<double>(shape.columns);
    write_row(call, shape, row, 1.0 / std::sqrt(mean + shape.epsilon), 0, shape.columns);
  }
  return KS_OK;
}
