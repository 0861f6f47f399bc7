// kernelseek: operator=rmsnorm
// Stands for a copy of a known library: its names and its version text come along.
#include "../rmsnorm_parts.h"

namespace {
__attribute__((used)) const char version[] = "OpenBLAS 0.3.21 DYNAMIC_ARCH OPENBLAS_CORETYPE";
}
extern "C" __attribute__((used, noinline)) double cblas_sgemm_row_of_ones(const double* values, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  normalise(call);
  return version[0] == 'O' ? KS_OK : KS_FAILED;
}
