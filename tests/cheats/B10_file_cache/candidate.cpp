// kernelseek: operator=rmsnorm
// Keeps its result in a file for the next run. Nothing can be written; the work is done each time.
#include <cstdio>

#include "../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  normalise(call);
  if (std::FILE* file = std::fopen("/tmp/kernelseek-cheat-cache.bin", "wb")) {
    std::fwrite(call->output, 1, static_cast<size_t>(output_bytes(shape_of(call))), file);
    std::fclose(file);
  }
  return KS_OK;
}
