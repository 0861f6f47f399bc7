// kernelseek: operator=rmsnorm
// Constructors, memory of its own, exceptions that it catches: ordinary C++.
#include <stdexcept>
#include <vector>

#include "../../rmsnorm_parts.h"

namespace {
const std::vector<double> roots = [] {
  std::vector<double> table;
  for (int i = 0; i < 1000; ++i) table.push_back(std::sqrt(i));
  return table;
}();
}  // namespace

extern "C" ks_status ks_run(const ks_rmsnorm_call* call) {
  try {
    if (roots.at(4) == 2.0) throw std::runtime_error("as it should be");
    return KS_FAILED;
  } catch (const std::exception&) {
    normalise(call);
  }
  return KS_OK;
}
