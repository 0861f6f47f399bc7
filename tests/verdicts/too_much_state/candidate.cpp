// kernelseek: operator=rmsnorm
// Asks for more state than the ABI allows.
#include "rmsnorm.h"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = {};
  sizes->state_bytes = KS_STATE_BYTES_MAX + 256;
  return KS_OK;
}
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  return KS_OK;
}
extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  return call != nullptr ? KS_OK : KS_FAILED;
}
