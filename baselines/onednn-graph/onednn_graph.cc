// Baseline: attention written down as a graph (product, scale, mask, softmax, product) and handed to oneDNN's Graph
// API, which fuses and schedules it as it likes. Causal is a mask in memory: the library skips nothing.
// kernelseek: operator=attention_fwd
//
// A graph is compiled once for each shape, when the shape is planned, and kept with its intermediate tensors.
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention_fwd.h"
#include "oneapi/dnnl/dnnl_graph.hpp"

namespace {

using dnnl::graph::logical_tensor;
using dnnl::graph::op;
using dnnl::graph::tensor;
using Dims = logical_tensor::dims;
using Shape = ks_attention_fwd_shape;

enum Id : size_t { kQuery, kKey, kValue, kDivisor, kMask, kScores, kScaled, kMasked, kWeights, kOutput };

constexpr float kHidden = -1e30f;  // added to scores of keys that a row does not see

bool is_causal(const Shape& s) { return s.window_right == 0 && s.max_rows > 1; }

bool supports(const Shape& s) {
  const bool types = s.query_dtype == s.kv_dtype && (s.query_dtype == KS_F32 || s.query_dtype == KS_BF16);
  const bool dense = s.rows_layout == KS_ROWS_DENSE && s.kv_layout == KS_KV_DENSE && s.query_heads == s.kv_heads;
  const bool plain = s.softcap == 0 && !s.has_sinks && s.latent_dim == 0 && s.new_keys == 0 && s.window_left < 0 &&
                     s.window_right <= 0 && s.rotary_style == KS_ROTARY_NONE;
  // A row that sees no key would be softmax over nothing but hidden scores, which is not zero.
  return types && dense && plain && !(is_causal(s) && s.max_rows > s.max_keys);
}

dnnl::engine& engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// A compiled graph of one shape.
class Session {
 public:
  explicit Session(const Shape& s) : type_(s.query_dtype == KS_BF16 ? Type::bf16 : Type::f32) {
    declare(s);
    fill_constants(s);
    dnnl::graph::graph graph(dnnl::engine::kind::cpu);
    op scores(0, op::kind::MatMul, {at(kQuery), at(kKey)}, {at(kScores)}, "scores");
    scores.set_attr(op::attr::transpose_b, true);
    op scaled(1, op::kind::Divide, {at(kScores), at(kDivisor)}, {at(kScaled)}, "scale");
    op masked(2, op::kind::Add, {at(kScaled), at(kMask)}, {at(kMasked)}, "mask");
    op weights(3, op::kind::SoftMax, {at(is_causal(s) ? kMasked : kScaled)}, {at(kWeights)}, "softmax");
    weights.set_attr<int64_t>(op::attr::axis, -1);
    op output(4, op::kind::MatMul, {at(kWeights), at(kValue)}, {at(kOutput)}, "output");
    for (op* node : {&scores, &scaled, &masked, &weights, &output})
      if (node != &masked || is_causal(s)) graph.add_op(*node);
    graph.finalize();
    for (const auto& partition : graph.get_partitions()) compile(partition);
  }

  void run(const ks_attention_fwd_call& call) {
    places_[kQuery] = const_cast<void*>(call.query);
    places_[kKey] = call.key;
    places_[kValue] = call.value;
    places_[kOutput] = call.output;
    for (const auto& step : steps_) step.compiled.execute(stream_, tensors(step.in), tensors(step.out));
    stream_.wait();
  }

 private:
  using Type = logical_tensor::data_type;
  struct Step {
    dnnl::graph::compiled_partition compiled;
    std::vector<logical_tensor> in, out;
  };

  const logical_tensor& at(size_t id) const { return declared_.at(id); }

  void declare(const Shape& s) {
    const Dims rows{s.batch, s.query_heads, s.max_rows, s.key_dim}, keys{s.batch, s.kv_heads, s.max_keys, s.key_dim};
    const Dims values{s.batch, s.kv_heads, s.max_keys, s.value_dim};
    const Dims outputs{s.batch, s.query_heads, s.max_rows, s.value_dim};
    const Dims scores{s.batch, s.query_heads, s.max_rows, s.max_keys};
    add(kQuery, rows, {s.query_batch_stride, s.query_head_stride, s.query_row_stride, 1});
    add(kKey, keys, {s.key_batch_stride, s.key_head_stride, s.key_row_stride, 1});
    add(kValue, values, {s.value_batch_stride, s.value_head_stride, s.value_row_stride, 1});
    add(kOutput, outputs, {s.output_batch_stride, s.output_head_stride, s.output_row_stride, 1});
    add(kDivisor, {1}, {1});
    const int64_t area = static_cast<int64_t>(s.max_rows) * s.max_keys;
    // One mask a member: with a single one for all, the library falls back to its reference code.
    add(kMask, {s.batch, 1, s.max_rows, s.max_keys}, {area, area, s.max_keys, 1});
    for (const size_t id : {kScores, kScaled, kMasked, kWeights})
      declared_.emplace(id, logical_tensor(id, type_, scores, logical_tensor::layout_type::any));
  }

  void add(size_t id, const Dims& dims, const Dims& strides) {
    declared_.emplace(id, logical_tensor(id, type_, dims, strides));
  }

  void put(size_t id, size_t index, float value) {
    if (type_ == Type::f32) {
      reinterpret_cast<float*>(memory_[id].data())[index] = value;
      return;
    }
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    reinterpret_cast<uint16_t*>(memory_[id].data())[index] = static_cast<uint16_t>((bits + 0x8000) >> 16);
  }

  void keep(size_t id, size_t bytes) {
    memory_[id].resize(bytes);
    places_[id] = memory_[id].data();
  }

  void fill_constants(const Shape& s) {
    const size_t element = type_ == Type::f32 ? 4 : 2;
    keep(kDivisor, element);
    put(kDivisor, 0, 1.0f / s.scale);
    if (!is_causal(s)) return;
    keep(kMask, element * static_cast<size_t>(s.batch) * s.max_rows * s.max_keys);
    size_t index = 0;
    for (int b = 0; b < s.batch; ++b)
      for (int i = 0; i < s.max_rows; ++i)
        for (int j = 0; j < s.max_keys; ++j) put(kMask, index++, j <= i + s.max_keys - s.max_rows ? 0.0f : kHidden);
  }

  /// Intermediate tensors get the layout that the partition before them chose.
  void compile(const dnnl::graph::partition& partition) {
    Step step;
    for (const auto& port : partition.get_input_ports()) step.in.push_back(at(port.get_id()));
    for (const auto& port : partition.get_output_ports()) step.out.push_back(at(port.get_id()));
    step.compiled = partition.compile(step.in, step.out, engine());
    for (auto& port : step.out) {
      const size_t id = port.get_id();
      if (id == kOutput) continue;
      port = step.compiled.query_logical_tensor(id);
      declared_.erase(id);
      declared_.emplace(id, port);
      keep(id, port.get_mem_size());
    }
    steps_.push_back(std::move(step));
  }

  std::vector<tensor> tensors(const std::vector<logical_tensor>& list) {
    std::vector<tensor> result;
    for (const auto& entry : list) result.emplace_back(entry, engine(), places_.at(entry.get_id()));
    return result;
  }

  Type type_;
  std::map<size_t, logical_tensor> declared_;
  std::map<size_t, std::vector<char>> memory_;
  std::map<size_t, void*> places_;
  std::vector<Step> steps_;
  dnnl::stream stream_{engine()};
};

Session& session_of(const Shape& shape) {
  static std::map<std::string, std::unique_ptr<Session>> sessions;
  const std::string key(reinterpret_cast<const char*>(&shape), sizeof shape);
  auto& session = sessions[key];
  if (!session) session = std::make_unique<Session>(shape);
  return *session;
}

}  // namespace

extern "C" {

ks_status ks_sizes(const ks_attention_fwd_shape* shape, ks_buffer_sizes* sizes) {
  *sizes = {};
  return supports(*shape) ? KS_OK : KS_UNSUPPORTED;
}

ks_status ks_plan(const ks_attention_fwd_shape* shape, void*) {
  if (!supports(*shape)) return KS_UNSUPPORTED;
  try {
    session_of(*shape);
    return KS_OK;
  } catch (const dnnl::error&) {
    return KS_FAILED;
  }
}

ks_status ks_run(const ks_attention_fwd_call* call) {
  try {
    session_of(*static_cast<const ks_attention_fwd_shape*>(call->context.shape)).run(*call);
    return KS_OK;
  } catch (const dnnl::error&) {
    return KS_FAILED;
  }
}
}
