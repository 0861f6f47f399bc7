// kernelseek: operator=rmsnorm
// The same work from two sources and other flags: the binary differs, the verdict must not.
#include "../../rmsnorm_parts.h"

void normalise_elsewhere(const ks_rmsnorm_call* call, int64_t row);

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  for (int64_t row = 0; row < shape_of(call).rows; ++row) normalise_elsewhere(call, row);
  return KS_OK;
}
