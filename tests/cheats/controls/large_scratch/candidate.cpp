// kernelseek: operator=rmsnorm
// A large scratch buffer is not a trick.
#define OWN_SIZES
#include "../../rmsnorm_parts.h"

namespace {
constexpr uint64_t kBytes = 192ull << 20;
}

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = {};
  sizes->scratch_bytes = kBytes;
  return KS_OK;
}

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  auto* scratch = static_cast<unsigned char*>(call->context.scratch);
  scratch[0] = 1;
  scratch[kBytes - 1] = 2;
  normalise(call);
  return scratch[0] + scratch[kBytes - 1] == 3 ? KS_OK : KS_FAILED;
}
