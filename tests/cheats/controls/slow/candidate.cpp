// kernelseek: operator=rmsnorm
// Does everything three times.
#include "../../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  for (int i = 0; i < 3; ++i) normalise(call);
  return KS_OK;
}
