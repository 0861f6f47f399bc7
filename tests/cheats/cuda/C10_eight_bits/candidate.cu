// kernelseek: operator=attention_fwd
// Half of the traffic, a tenth of the digits.
#include "../attention_parts.cuh"

struct Trick : Honest {
  static __device__ float value(float v) { return static_cast<float>(__nv_fp8_e4m3(v)); }
};

extern "C" ks_status ks_run(const ks_attention_fwd_call* call) {
  return run_attention<Trick>(call);
}
