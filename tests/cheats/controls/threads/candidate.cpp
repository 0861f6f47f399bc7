// kernelseek: operator=rmsnorm
// As many threads as the call allows, all of them done before it returns.
#include <thread>
#include <vector>

#include "../../rmsnorm_parts.h"

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  const int64_t rows = shape_of(call).rows, count = call->context.threads > 1 ? call->context.threads : 1;
  std::vector<std::thread> others;
  for (int64_t i = 1; i < count; ++i)
    others.emplace_back([call, rows, count, i] { normalise_rows(call, rows * i / count, rows * (i + 1) / count); });
  normalise_rows(call, 0, rows / count);
  for (auto& other : others) other.join();
  return KS_OK;
}
