// The second source: one row.
#define SECOND_SOURCE
#include "../../rmsnorm_parts.h"

void normalise_elsewhere(const ks_rmsnorm_call* call, int64_t row) {
  normalise_row(call, shape_of(call), row);
}
