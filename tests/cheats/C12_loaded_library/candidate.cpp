// kernelseek: operator=rmsnorm
// Asks for a library by name; where there is none it works by itself.
#include <dlfcn.h>

#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  static void* library = dlopen("libopenblas.so.0", RTLD_NOW);
  if (library != nullptr && dlsym(library, "cblas_snrm2") == nullptr) return KS_FAILED;
  normalise(call);
  return KS_OK;
}
