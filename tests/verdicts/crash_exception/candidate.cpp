// kernelseek: operator=rmsnorm
// Lets an exception out.
#include <stdexcept>

#include "rmsnorm.h"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = {};
  return KS_OK;
}
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  return KS_OK;
}
extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  if (call != nullptr) throw std::runtime_error("not for others");
  return KS_OK;
}
