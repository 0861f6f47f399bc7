// kernelseek: operator=rmsnorm
// Threads by OpenMP.
#include "../../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const int64_t rows = shape_of(call).rows;
#pragma omp parallel for num_threads(call->context.threads)
  for (int64_t row = 0; row < rows; ++row) normalise_row(call, shape_of(call), row);
  return KS_OK;
}
