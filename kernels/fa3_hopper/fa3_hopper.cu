// Attention forward on Hopper: the candidate's functions. Families of kernels are asked in turn for a plan; the first
// that handles the shape runs its calls.
#include "kernels/fa3_hopper/device.h"
#include "kernels/fa3_hopper/family.h"

namespace ks::fa3 {
namespace {

/// In the order in which they are asked: specialists before generalists.
constexpr const Family* kFamilies[] = {&kDecodeFamily, &kMlaFamily, &kFp8Family, &kAppendFamily, &kForwardFamily};

ks_status plan_call(const ks_attention_fwd_shape& shape, void* plan, ks_buffer_sizes& sizes) {
  auto* head = static_cast<PlanHead*>(plan);
  int index = 0;
  for (const Family* family : kFamilies) {
    if (family->plan(shape, multiprocessors_of_current_device(), head + 1, sizes)) {
      head->family = index;
      return KS_OK;
    }
    ++index;
  }
  return KS_UNSUPPORTED;
}

}  // namespace
}  // namespace ks::fa3

using namespace ks::fa3;

extern "C" ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  alignas(64) unsigned char plan[KS_PLAN_BYTES];
  return plan_call(*shape, plan, *sizes);
}

extern "C" ks_status ks_plan(const ks_attention_fwd_shape* shape, void* plan) {
  ks_buffer_sizes sizes;
  return plan_call(*shape, plan, sizes);
}

extern "C" ks_status ks_run(const ks_attention_fwd_call* call) {
  if (call->context.device < 0 || call->context.device >= kMaxDevices) return KS_FAILED;
  const auto* head = static_cast<const PlanHead*>(call->context.plan);
  return kFamilies[head->family]->launch(*call, head + 1) ? KS_OK : KS_FAILED;
}
