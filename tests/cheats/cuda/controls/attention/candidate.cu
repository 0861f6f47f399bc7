// kernelseek: operator=attention_fwd
// What the tricks on attention change one thing of.
#include "../../attention_parts.cuh"

extern "C" ks_status ks_run(const ks_attention_fwd_call* call) {
  return run_attention<Honest>(call);
}
