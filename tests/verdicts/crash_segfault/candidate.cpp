// kernelseek: operator=rmsnorm
// Writes where nothing is.
#include "rmsnorm.h"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = {};
  return KS_OK;
}
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  return KS_OK;
}
extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  *reinterpret_cast<volatile int*>(8) = static_cast<int>(call->context.threads);
  return KS_OK;
}
