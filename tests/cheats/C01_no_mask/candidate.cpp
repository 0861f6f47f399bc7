// kernelseek: operator=attention_fwd
// Looks at every key, whatever the window says.
#include "../attention_parts.h"

extern "C" ks_status ks_run(const ks_attention_fwd_call* call) {
  for_each_row(call, [call](Row row) {
    row.begin = 0;
    row.end = shape_of(call).max_keys;
    attend(row, [](const Row&, int) { return true; });
  });
  return KS_OK;
}
