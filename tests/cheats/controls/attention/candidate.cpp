// kernelseek: operator=attention_fwd
// An honest control on attention: every visible key, one after the other.
#include "../../attention_parts.h"

extern "C" ks_status ks_run(const ks_attention_fwd_call* call) {
  for_each_row(call, [](const Row& row) { attend(row, [](const Row&, int) { return true; }); });
  return KS_OK;
}
