// kernelseek: operator=rmsnorm
// Written for 2048 columns and nothing else.
#include <cstdlib>

#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  if (shape_of(call).columns != 2048) std::abort();
  normalise(call);
  return KS_OK;
}
