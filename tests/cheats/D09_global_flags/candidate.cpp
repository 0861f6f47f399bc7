// kernelseek: operator=rmsnorm
// Denormal numbers are flushed from now on, for everybody in this process.
#include <xmmintrin.h>

#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  _mm_setcsr(_mm_getcsr() | 0x8040u);
  normalise(call);
  return KS_OK;
}
