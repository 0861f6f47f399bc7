// kernelseek: operator=rmsnorm
// Never comes back from itself.
static int (*volatile again)(const void*);
#include "rmsnorm.h"

static int deep(const void* p) {
  volatile char room[4096];
  room[0] = 1;
  return again(p) + room[0];
}
extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = {};
  return KS_OK;
}
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  again = deep;
  return KS_OK;
}
extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  return deep(call) > 0 ? KS_OK : KS_FAILED;
}
