// kernelseek: operator=rmsnorm
// What the tricks are compared with.
#include "../../rmsnorm_parts.cuh"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  plain_kernel<<<rows_of(call), kThreads, 0, stream_of(call)>>>(shape_of(call), *call);
  return status();
}
