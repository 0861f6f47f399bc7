// Baseline: attention in tiles over oneDNN's matmul primitives, fp32 and bf16 (fp16 is converted to float first).
// kernelseek: operator=attention_fwd
#include <map>
#include <tuple>

#include "oneapi/dnnl/dnnl.hpp"

#include "../tiled/tiled_attention.h"

namespace {

dnnl::engine& engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// One product of this shape, kept by each thread.
struct Product {
  dnnl::matmul primitive;
  dnnl::memory a, b, c, scratch;
};

using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, float>;

template <typename T>
Product make_product(const Key& key) {
  const auto [m, n, k, lda, ldb, ldc, b_is_transposed, add, scale] = key;
  const auto type = sizeof(T) == 2 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  const dnnl::memory::desc a({m, k}, type, dnnl::memory::dims{lda, 1});
  const dnnl::memory::desc b({k, n}, type, b_is_transposed ? dnnl::memory::dims{1, ldb} : dnnl::memory::dims{ldb, 1});
  const dnnl::memory::desc c({m, n}, dnnl::memory::data_type::f32, dnnl::memory::dims{ldc, 1});
  dnnl::primitive_attr attributes;
  // The library's own allocation faults its scratch in anew at every call; ours is kept.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops after;
  if (scale != 1.0f) after.append_eltwise(dnnl::algorithm::eltwise_linear, scale, 0.0f);
  if (add) after.append_sum(1.0f);
  attributes.set_post_ops(after);
  const dnnl::matmul::primitive_desc description(engine(), a, b, c, attributes);
  return {dnnl::matmul(description), dnnl::memory(a, engine(), nullptr), dnnl::memory(b, engine(), nullptr),
          dnnl::memory(c, engine(), nullptr), dnnl::memory(description.scratchpad_desc(), engine())};
}

template <typename T>
struct OneDnn {
  using Type = T;
  static void product(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
                      bool b_is_transposed, float scale, float* c, int64_t ldc, bool add) {
    thread_local std::map<Key, Product> products;
    thread_local dnnl::stream stream(engine());
    const Key key{m, n, k, lda, ldb, ldc, b_is_transposed, add, scale};
    auto found = products.find(key);
    if (found == products.end()) found = products.emplace(key, make_product<T>(key)).first;
    Product& product = found->second;
    product.a.set_data_handle(const_cast<T*>(a));
    product.b.set_data_handle(const_cast<T*>(b));
    product.c.set_data_handle(c);
    product.primitive.execute(stream, {{DNNL_ARG_SRC, product.a}, {DNNL_ARG_WEIGHTS, product.b},
                                       {DNNL_ARG_DST, product.c}, {DNNL_ARG_SCRATCHPAD, product.scratch}});
  }
};

}  // namespace

extern "C" {

ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = {};
  return tiled::supports(*shape) ? KS_OK : KS_UNSUPPORTED;
}

ks_status ks_plan(const ks_attention_fwd_shape* shape, void*) { return tiled::supports(*shape) ? KS_OK : KS_UNSUPPORTED; }

ks_status ks_run(const ks_attention_fwd_call* call) {
  const auto& shape = *static_cast<const ks_attention_fwd_shape*>(call->context.shape);
  try {
    return shape.query_dtype == KS_BF16 ? tiled::run<OneDnn<uint16_t>>(*call) : tiled::run<OneDnn<float>>(*call);
  } catch (const dnnl::error&) {
    return KS_FAILED;
  }
}
}
