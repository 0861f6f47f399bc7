// kernelseek: operator=rmsnorm
// Calls into a library that is not its own.
#include "../rmsnorm_parts.h"

extern "C" unsigned long OpenSSL_version_num(void);

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  if (OpenSSL_version_num() == 0) return KS_FAILED;
  normalise(call);
  return KS_OK;
}
