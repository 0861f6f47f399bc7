// A family of kernels: calls that are planned and launched alike. The entry (fa3_hopper.cu) asks the families in turn,
// the first that handles a shape keeps it, and ks_run goes straight to that one.
//
// A family's own plan follows the entry's in the caller's plan buffer: plain values, no pointers.
#pragma once

#include <cstddef>

#include "attention_fwd.h"

namespace ks::fa3 {

/// What the entry keeps at the start of the plan buffer.
struct alignas(64) PlanHead {
  int family;  ///< index in the entry's table
};

/// Bytes of the plan buffer that are left to a family; its plan starts at a multiple of 64.
inline constexpr size_t kFamilyPlanBytes = KS_PLAN_BYTES - sizeof(PlanHead);

struct Family {
  const char* name;
  /// Fills `plan` and the buffer sizes for a device with so many multiprocessors; false if it does not handle the shape.
  bool (*plan)(const ks_attention_fwd_shape& shape, int multiprocessors, void* plan, ks_buffer_sizes& sizes);
  /// Launches the one kernel of a planned call on its stream; false on any failure.
  bool (*launch)(const ks_attention_fwd_call& call, const void* plan);
};

// Each is defined in its family's own source file.
extern const Family kDecodeFamily;   ///< few query rows a (member, kv head), 16-bit or e4m3 caches: decode/
extern const Family kMlaFamily;      ///< 576/512 latent caches: mla/
extern const Family kFp8Family;      ///< e4m3 queries, keys and values: fp8/
extern const Family kAppendFamily;   ///< appended keys, rotary, left padding: append/
extern const Family kForwardFamily;  ///< prefill, and whatever 16-bit call nobody else takes: forward_family.cu

}  // namespace ks::fa3
