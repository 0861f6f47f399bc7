#include "operators/attention_fwd/layout.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "operators/attention_fwd/counts.h"

namespace ks::attention_fwd {
namespace {

using core::Dtype;
using op::Tensor;

int32_t longest(const std::vector<int32_t>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}
int64_t sum(const std::vector<int32_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

/// Pages: what the members own, and spare ones that no table of theirs names, so that a stray read meets garbage.
void shape_pages(const Spec& spec, ks_attention_fwd_shape& shape) {
  int64_t owned = 0;
  for (const int32_t keys : spec.keys) owned += pages_of(keys, spec.page_size);
  shape.page_size = spec.page_size;
  shape.page_count = static_cast<int32_t>(owned + 1 + std::min<int64_t>(owned / 16, 7));
  shape.page_table_stride = static_cast<int32_t>(std::max<int64_t>(pages_of(shape.max_keys, spec.page_size), 1));
  shape.total_keys = static_cast<int64_t>(shape.page_count) * spec.page_size;
}

/// Strides of [outer, rows, heads, columns], packed.
struct Strides {
  int64_t outer, row, head;
};
Strides packed(int64_t rows, int64_t heads, int64_t columns, bool has_outer) {
  return {has_outer ? rows * heads * columns : 0, heads * columns, columns};
}

void shape_strides(const Spec& spec, ks_attention_fwd_shape& shape) {
  const bool dense = spec.rows_layout == KS_ROWS_DENSE;
  const bool has_outer = spec.kv_layout != KS_KV_PACKED;
  const int64_t inner = spec.kv_layout == KS_KV_PAGED ? spec.page_size : shape.max_keys;
  const Strides query = packed(shape.max_rows, shape.query_heads, shape.key_dim, dense);
  shape.query_batch_stride = query.outer, shape.query_row_stride = query.row, shape.query_head_stride = query.head;
  if (spec.is_latent)
    shape.query_latent_batch_stride = query.outer, shape.query_latent_row_stride = query.row,
    shape.query_latent_head_stride = query.head;
  const Strides key = packed(inner, shape.kv_heads, shape.key_dim, has_outer);
  shape.key_batch_stride = key.outer, shape.key_row_stride = key.row, shape.key_head_stride = key.head;
  const Strides value = spec.is_latent ? key : packed(inner, shape.kv_heads, shape.value_dim, has_outer);
  shape.value_batch_stride = value.outer, shape.value_row_stride = value.row, shape.value_head_stride = value.head;
  if (spec.appends) {
    const Strides k = packed(shape.new_keys, shape.kv_heads, shape.key_dim, true);
    const Strides v = packed(shape.new_keys, shape.kv_heads, shape.value_dim, true);
    shape.new_key_batch_stride = k.outer, shape.new_key_row_stride = k.row, shape.new_key_head_stride = k.head;
    shape.new_value_batch_stride = v.outer, shape.new_value_row_stride = v.row, shape.new_value_head_stride = v.head;
  }
  const Strides output = packed(shape.max_rows, shape.query_heads, shape.value_dim, dense);
  shape.output_batch_stride = output.outer, shape.output_row_stride = output.row,
  shape.output_head_stride = output.head;
  shape.lse_row_stride = 1;
  shape.lse_head_stride = dense ? shape.max_rows : shape.total_rows;
  shape.lse_batch_stride = dense ? static_cast<int64_t>(shape.query_heads) * shape.max_rows : 0;
}

ks_attention_fwd_shape make_shape(const Spec& spec) {
  ks_attention_fwd_shape shape{};
  shape.header = {KS_ABI_VERSION, sizeof(shape)};
  shape.query_dtype = static_cast<int32_t>(spec.query_dtype);
  shape.kv_dtype = static_cast<int32_t>(spec.kv_dtype);
  shape.output_dtype = static_cast<int32_t>(spec.output_dtype);
  shape.rows_layout = spec.rows_layout;
  shape.kv_layout = spec.kv_layout;
  shape.batch = spec.batch;
  shape.query_heads = spec.query_heads;
  shape.kv_heads = spec.kv_heads;
  shape.key_dim = spec.key_dim;
  shape.value_dim = spec.value_dim;
  shape.max_rows = longest(spec.rows);
  shape.max_keys = longest(spec.keys);
  shape.total_rows = sum(spec.rows);
  shape.total_keys =
      spec.kv_layout == KS_KV_PACKED ? sum(spec.keys) : static_cast<int64_t>(spec.batch) * shape.max_keys;
  if (spec.kv_layout == KS_KV_PAGED) shape_pages(spec, shape);
  shape.latent_dim = spec.is_latent ? spec.value_dim : 0;
  shape.values_in_keys = spec.is_latent ? 1 : 0;
  shape.new_keys = spec.new_keys();
  shape.rotary_style = spec.rotary_style;
  shape.rotary_dim = spec.rotary_dim;
  if (spec.rotary_dim > 0) shape.rotary_row_stride = spec.rotary_dim / 2, shape.rotary_rows = shape.max_keys;
  shape.has_leftpad = spec.has_leftpad ? 1 : 0;
  shape.window_left = spec.window_left;
  shape.window_right = spec.window_right;
  shape.has_sinks = spec.has_sinks ? 1 : 0;
  shape.scale = spec.scale;
  shape.softcap = spec.softcap;
  shape.has_descale = spec.descale == Descale::kNone ? 0 : 1;
  if (spec.descale == Descale::kPerHead) shape.descale_batch_stride = spec.kv_heads, shape.descale_head_stride = 1;
  shape_strides(spec, shape);
  return shape;
}

/// What a released kernel may make that rounds a 16-bit query to e4m3: up to 0.335 was seen in a row.
constexpr double kRoundedRow = 0.5, kRoundedMeanRow = 8e-2, kRoundedLse = 0.5, kRoundedMeanLse = 5e-2;

/// What errors are accepted, by the type that decides the accuracy. contract.md says where the figures come from.
struct Limits {
  double output, lse, appended_key;
};
Limits limits_of(const Spec& spec) {
  Limits limits{2e-5, 1e-4, 2e-6};
  if (spec.query_dtype == Dtype::kF16) limits = {1e-3, 1e-3, 1e-3};
  if (spec.query_dtype == Dtype::kBf16) limits = {8e-3, 1e-3, 8e-3};
  if (spec.query_dtype == Dtype::kE4m3) limits = {8e-2, 5e-2, 8e-2};
  // Released kernels round the rotated query to its type, which shifts scores by what the rounding of one operand
  // makes.
  if (spec.rotary_style != KS_ROTARY_NONE && spec.query_dtype != Dtype::kF32) {
    limits.output *= 2;
    limits.lse = 2.5 * limits.output;
  }
  // Under a cap, released kernels use an approximate tanh that is right to 2^-11 of its value.
  if (spec.softcap > 0 && spec.query_dtype != Dtype::kF32) {
    limits.output *= 1.5;
    limits.lse += static_cast<double>(spec.softcap) * 0x1.0p-11;
  }
  return limits;
}

/// Collects the tensors of a problem.
class TensorList {
 public:
  explicit TensorList(std::vector<Tensor>& tensors) : tensors_(tensors) {}

  Tensor& add(const char* name, Dtype dtype, std::vector<int64_t> shape, size_t slot) {
    Tensor tensor;
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
    tensor.strides.assign(tensor.shape.size(), 1);
    for (size_t axis = tensor.shape.size(); axis-- > 1;)
      tensor.strides[axis - 1] = tensor.strides[axis] * tensor.shape[axis];
    int64_t elements = 1;
    for (const int64_t extent : tensor.shape) elements *= extent;
    tensor.bytes = static_cast<uint64_t>(elements) * core::dtype_bytes(dtype);
    tensor.slots = {{static_cast<uint32_t>(slot), 0}};
    return tensors_.emplace_back(std::move(tensor));
  }

 private:
  std::vector<Tensor>& tensors_;
};

#define KS_SLOT(member) offsetof(ks_attention_fwd_call, member)

void add_query_and_cache(const Spec& spec, const ks_attention_fwd_shape& shape, TensorList& list) {
  const bool dense = spec.rows_layout == KS_ROWS_DENSE;
  std::vector<int64_t> query = {shape.total_rows, shape.query_heads, shape.key_dim};
  if (dense) query = {shape.batch, shape.max_rows, shape.query_heads, shape.key_dim};
  Tensor& q = list.add("query", spec.query_dtype, query, KS_SLOT(query));
  if (spec.is_latent)
    q.slots = {{KS_SLOT(query_latent), 0},
               {KS_SLOT(query), static_cast<uint64_t>(shape.latent_dim) * core::dtype_bytes(spec.query_dtype)}};

  std::vector<int64_t> keys = {shape.batch, shape.max_keys, shape.kv_heads};
  if (spec.kv_layout == KS_KV_PACKED) keys = {shape.total_keys, shape.kv_heads};
  if (spec.kv_layout == KS_KV_PAGED) keys = {shape.page_count, shape.page_size, shape.kv_heads};
  const auto with_columns = [&](int64_t columns) {
    std::vector<int64_t> extents = keys;
    extents.push_back(columns);
    return extents;
  };
  const auto write = [&](Tensor& tensor, double limit) {
    if (!spec.appends) return;
    tensor.role = op::Role::kInOut;
    tensor.rule = op::OutputRule::kRelativeL2Row;
    tensor.limit = limit;
  };
  Tensor& key = list.add("key", spec.kv_dtype, with_columns(shape.key_dim), KS_SLOT(key));
  write(key, spec.rotary_style == KS_ROTARY_NONE ? 0 : limits_of(spec).appended_key);
  if (spec.is_latent)
    key.slots.push_back({KS_SLOT(value), 0});
  else
    write(list.add("value", spec.kv_dtype, with_columns(shape.value_dim), KS_SLOT(value)), 0);
  if (!spec.appends) return;
  list.add("new_key", spec.kv_dtype, {shape.batch, shape.new_keys, shape.kv_heads, shape.key_dim}, KS_SLOT(new_key));
  list.add("new_value", spec.kv_dtype, {shape.batch, shape.new_keys, shape.kv_heads, shape.value_dim},
           KS_SLOT(new_value));
}

void add_lengths(const Spec& spec, const ks_attention_fwd_shape& shape, TensorList& list) {
  if (spec.rows_layout == KS_ROWS_PACKED) list.add("cu_rows", Dtype::kI32, {shape.batch + 1}, KS_SLOT(cu_rows));
  if (spec.kv_layout == KS_KV_PACKED) list.add("cu_keys", Dtype::kI32, {shape.batch + 1}, KS_SLOT(cu_keys));
  if (spec.kv_layout == KS_KV_CACHE || spec.kv_layout == KS_KV_PAGED)
    list.add("key_lengths", Dtype::kI32, {shape.batch}, KS_SLOT(key_lengths));
  if (spec.kv_layout == KS_KV_PAGED)
    list.add("page_table", Dtype::kI32, {shape.batch, shape.page_table_stride}, KS_SLOT(page_table));
  if (spec.has_leftpad) list.add("leftpad", Dtype::kI32, {shape.batch}, KS_SLOT(leftpad));
}

void add_small(const Spec& spec, const ks_attention_fwd_shape& shape, TensorList& list) {
  if (spec.rotary_dim > 0) {
    list.add("rotary_cos", spec.query_dtype, {shape.rotary_rows, shape.rotary_dim / 2}, KS_SLOT(rotary_cos));
    list.add("rotary_sin", spec.query_dtype, {shape.rotary_rows, shape.rotary_dim / 2}, KS_SLOT(rotary_sin));
  }
  if (spec.has_sinks) list.add("sinks", spec.output_dtype, {shape.query_heads}, KS_SLOT(sinks));
  if (spec.descale == Descale::kNone) return;
  std::vector<int64_t> extents = {1, 1};
  if (spec.descale == Descale::kPerHead) extents = {shape.batch, shape.kv_heads};
  if (spec.query_dtype == Dtype::kE4m3) list.add("query_descale", Dtype::kF32, extents, KS_SLOT(query_descale));
  list.add("key_descale", Dtype::kF32, extents, KS_SLOT(key_descale));
  list.add("value_descale", Dtype::kF32, extents, KS_SLOT(value_descale));
}

void add_outputs(const Spec& spec, const ks_attention_fwd_shape& shape, TensorList& list) {
  const bool dense = spec.rows_layout == KS_ROWS_DENSE;
  std::vector<int64_t> rows = {shape.total_rows, shape.query_heads};
  if (dense) rows = {shape.batch, shape.max_rows, shape.query_heads};
  const auto with_columns = [&](int64_t columns) {
    std::vector<int64_t> extents = rows;
    extents.push_back(columns);
    return extents;
  };
  const Limits limits = limits_of(spec);
  // A 16-bit query over an e4m3 cache: libraries that round the query to the cache's type are told from wrong ones by
  // the mean; a single row with two strong keys may be far off.
  const bool may_round = spec.kv_dtype == Dtype::kE4m3 && spec.query_dtype != Dtype::kE4m3;
  Tensor& output = list.add("output", spec.output_dtype, with_columns(shape.value_dim), KS_SLOT(output));
  output.role = op::Role::kOutput;
  output.rule = op::OutputRule::kRelativeL2Row;
  output.limit = limits.output;
  if (may_round) output.e4m3_limit = kRoundedRow, output.e4m3_mean_limit = kRoundedMeanRow;
  // One column a row: indexed as the output is, though heads lie outside rows in memory.
  Tensor& lse = list.add("lse", Dtype::kF32, with_columns(1), KS_SLOT(lse));
  lse.role = op::Role::kOutput;
  lse.rule = op::OutputRule::kAbsolute;
  lse.limit = limits.lse;
  if (may_round) lse.e4m3_limit = kRoundedLse, lse.e4m3_mean_limit = kRoundedMeanLse;
  lse.strides = {shape.lse_row_stride, shape.lse_head_stride, 1};
  if (dense) lse.strides.insert(lse.strides.begin(), shape.lse_batch_stride);
}

}  // namespace

const ks_attention_fwd_shape& shape_of(const op::Problem& problem) {
  return *reinterpret_cast<const ks_attention_fwd_shape*>(problem.shape_blob.data());
}

TensorIndex index_tensors(const op::Problem& problem) {
  TensorIndex index;
  const std::pair<const char*, int*> known[] = {{"query", &index.query},
                                                {"key", &index.key},
                                                {"value", &index.value},
                                                {"new_key", &index.new_key},
                                                {"new_value", &index.new_value},
                                                {"cu_rows", &index.cu_rows},
                                                {"cu_keys", &index.cu_keys},
                                                {"key_lengths", &index.key_lengths},
                                                {"page_table", &index.page_table},
                                                {"leftpad", &index.leftpad},
                                                {"rotary_cos", &index.rotary_cos},
                                                {"rotary_sin", &index.rotary_sin},
                                                {"sinks", &index.sinks},
                                                {"query_descale", &index.query_descale},
                                                {"key_descale", &index.key_descale},
                                                {"value_descale", &index.value_descale},
                                                {"output", &index.output},
                                                {"lse", &index.lse}};
  for (size_t t = 0; t < problem.tensors.size(); ++t)
    for (const auto& [name, slot] : known)
      if (problem.tensors[t].name == name) *slot = static_cast<int>(t);
  return index;
}

op::Problem make_problem(const core::Scenario& scenario) {
  const Spec spec = read_spec(scenario);
  const ks_attention_fwd_shape shape = make_shape(spec);
  op::Problem problem;
  problem.scenario = scenario;
  problem.shape_blob.assign(reinterpret_cast<const char*>(&shape), sizeof(shape));
  ks_attention_fwd_call call{};
  call.context.abi_version = KS_ABI_VERSION;
  call.context.struct_bytes = sizeof(call);
  problem.call_blob.assign(reinterpret_cast<const char*>(&call), sizeof(call));
  TensorList list(problem.tensors);
  add_query_and_cache(spec, shape, list);
  add_lengths(spec, shape, list);
  add_small(spec, shape, list);
  add_outputs(spec, shape, list);
  const Counts counts = count(spec, shape);
  problem.flops = counts.flops;
  problem.bytes = counts.bytes;
  problem.matrix_dtype = spec.query_dtype;
  problem.has_lengths = spec.rows_layout == KS_ROWS_PACKED || spec.kv_layout != KS_KV_DENSE;
  return problem;
}

}  // namespace ks::attention_fwd
