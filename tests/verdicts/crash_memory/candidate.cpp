// kernelseek: operator=rmsnorm
// Takes all the memory there is.
#include <vector>

#include "rmsnorm.h"

extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = {};
  return KS_OK;
}
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  return KS_OK;
}
extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  std::vector<char*> held;
  while (true) {
    held.push_back(new char[64u << 20]);
    for (unsigned i = 0; i < (64u << 20); i += 4096) held.back()[i] = 1;
  }
  return call != nullptr ? KS_OK : KS_FAILED;
}
