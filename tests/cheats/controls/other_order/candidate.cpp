// kernelseek: operator=rmsnorm
// Another order of summation, in single precision: other bits, within the limit.
#include "../../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  for (int64_t row = 0; row < shape.rows; ++row) {
    float lanes[16] = {};
    for (int64_t c = shape.columns - 1; c >= 0; --c) {
      const auto x = static_cast<float>(load(call->input, shape.dtype, row * shape.input_row_stride + c));
      lanes[c % 16] += x * x;
    }
    float sum = 0;
    for (const float lane : lanes) sum += lane;
    write_row(call, shape, row, 1.0f / std::sqrt(sum / static_cast<float>(shape.columns) + shape.epsilon), 0,
              shape.columns);
  }
  return KS_OK;
}
