// kernelseek: operator=rmsnorm
// Writes to the plan, which is read-only in a call.
#include "rmsnorm.h"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = {};
  return KS_OK;
}
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  return KS_OK;
}
extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  *static_cast<char*>(const_cast<void*>(call->context.plan)) = 1;
  return KS_OK;
}
