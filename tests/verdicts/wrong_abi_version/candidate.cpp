// Was built against another ABI.
#include <stdint.h>
#define KS_EXPORTED extern "C" __attribute__((visibility("default")))
KS_EXPORTED const uint32_t ks_abi_version = 99;
KS_EXPORTED const char ks_source_hash[] = KS_SOURCE_HASH;
KS_EXPORTED int32_t ks_sizes(const void*, void*) {
  return 0;
}
KS_EXPORTED int32_t ks_plan(const void*, void*) {
  return 0;
}
KS_EXPORTED int32_t ks_run(const void*) {
  return 0;
}
