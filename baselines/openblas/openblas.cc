// Baseline: attention in tiles over OpenBLAS. 16-bit types are converted to float first: OpenBLAS has no fast product
// for them on most processors.
// kernelseek: operator=attention_fwd
#include <cblas.h>

#include "../tiled/tiled_attention.h"

namespace {

struct OpenBlas {
  using Type = float;
  static void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                      bool b_is_transposed, float scale, float* c, int64_t ldc, bool add) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, b_is_transposed ? CblasTrans : CblasNoTrans, static_cast<int>(m),
                static_cast<int>(n), static_cast<int>(k), scale, a, static_cast<int>(lda), b, static_cast<int>(ldb),
                add ? 1.0f : 0.0f, c, static_cast<int>(ldc));
  }
};

}  // namespace

extern "C" {

ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = {};
  return tiled::supports(*shape) ? KS_OK : KS_UNSUPPORTED;
}

ks_status ks_plan(const ks_attention_fwd_shape* shape, void*) {
  openblas_set_num_threads(1);  // tiles run in parallel; a product within one must not
  return tiled::supports(*shape) ? KS_OK : KS_UNSUPPORTED;
}

ks_status ks_run(const ks_attention_fwd_call* call) { return tiled::run<OpenBlas>(*call); }
}
