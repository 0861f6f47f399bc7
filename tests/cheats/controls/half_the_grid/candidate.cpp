// kernelseek: operator=rmsnorm
// Saying that a shape is not supported is allowed; the scenario is then unsupported, not wrong.
#define OWN_SIZES
#include "../../rmsnorm_parts.h"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = {};
  return shape->dtype == KS_F32 ? KS_OK : KS_UNSUPPORTED;
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  normalise(call);
  return KS_OK;
}
