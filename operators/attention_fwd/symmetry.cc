#include "operators/attention_fwd/symmetry.h"

#include <cstring>
#include <numeric>

#include "operators/attention_fwd/view.h"
#include "operators/permutation.h"

namespace ks::attention_fwd {
namespace {

using core::Dtype;

/// Draws one symmetry, part by part.
class Drawer {
 public:
  Drawer(const op::Problem& problem, const op::Buffers& buffers, uint64_t seed)
      : problem_(problem), view_(problem, buffers), shape_(*view_.shape), random_(seed) {}

  op::Symmetry draw() {
    members_ = op::random_permutation(static_cast<size_t>(shape_.batch), random_);
    move_members();
    if (shape_.kv_layout == KS_KV_PAGED) move_pages();
    move_heads();
    if (shape_.latent_dim > 0)
      move_latent_columns();
    else
      move_columns();
    return std::move(symmetry_);
  }

 private:
  const op::Tensor& tensor(int index) const { return problem_.tensors[static_cast<size_t>(index)]; }

  void map_axis(int index, int axis, const std::vector<int32_t>& source) {
    if (index >= 0) symmetry_.axes.push_back({index, axis, source});
  }
  /// Heads and columns are the last two axes of the large tensors.
  void map_heads(int index, const std::vector<int32_t>& source) {
    if (index >= 0) map_axis(index, static_cast<int>(tensor(index).shape.size()) - 2, source);
  }
  void map_columns(int index, const std::vector<int32_t>& source, const std::vector<float>& factor) {
    if (index < 0) return;
    map_axis(index, static_cast<int>(tensor(index).shape.size()) - 1, source);
    symmetry_.factors.push_back({index, factor});
  }
  void replace(int index, const std::vector<int32_t>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(int32_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    symmetry_.replacements.push_back({index, std::move(bytes)});
  }

  /// Packed rows of the members in their new order: where each came from, and the new cumulative lengths.
  void move_packed(const std::vector<int64_t>& first, const std::vector<int64_t>& lengths, int cumulative,
                   const std::vector<int>& tensors) {
    std::vector<int32_t> source, sums = {0};
    for (const int32_t b : members_) {
      const auto m = static_cast<size_t>(b);
      for (int64_t i = 0; i < lengths[m]; ++i) source.push_back(static_cast<int32_t>(first[m] + i));
      sums.push_back(static_cast<int32_t>(source.size()));
    }
    for (const int index : tensors) map_axis(index, 0, source);
    replace(cumulative, sums);
  }

  void move_members() {
    const TensorIndex& at = view_.index;
    if (shape_.rows_layout == KS_ROWS_PACKED)
      move_packed(view_.first_row, view_.rows, at.cu_rows, {at.query, at.output, at.lse});
    else
      for (const int index : {at.query, at.output, at.lse}) map_axis(index, 0, members_);
    if (shape_.kv_layout == KS_KV_PACKED)
      move_packed(view_.first_key, view_.keys, at.cu_keys, {at.key, at.value});
    else if (shape_.kv_layout != KS_KV_PAGED)
      for (const int index : {at.key, at.value}) map_axis(index, 0, members_);
    for (const int index : {at.new_key, at.new_value, at.key_lengths, at.leftpad}) map_axis(index, 0, members_);
    if (shape_.descale_batch_stride != 0)
      for (const int index : {at.query_descale, at.key_descale, at.value_descale}) map_axis(index, 0, members_);
  }

  /// Page n of the new cache is page source[n] of the old; the table follows pages and members.
  void move_pages() {
    const auto source = op::random_permutation(static_cast<size_t>(shape_.page_count), random_);
    const auto place = op::inverse_permutation(source);
    map_axis(view_.index.key, 0, source);
    map_axis(view_.index.value, 0, source);
    const auto stride = static_cast<size_t>(shape_.page_table_stride);
    std::vector<int32_t> table;
    for (const int32_t b : members_)
      for (size_t p = 0; p < stride; ++p)
        table.push_back(place[static_cast<size_t>(view_.pages[static_cast<size_t>(b) * stride + p])]);
    replace(view_.index.page_table, table);
  }

  void move_heads() {
    const TensorIndex& at = view_.index;
    const auto groups = op::random_permutation(static_cast<size_t>(shape_.kv_heads), random_);
    const auto group = static_cast<int32_t>(view_.group());
    std::vector<int32_t> heads;
    for (const int32_t g : groups)
      for (const int32_t h : op::random_permutation(static_cast<size_t>(group), random_))
        heads.push_back(g * group + h);
    for (const int index : {at.query, at.output, at.lse}) map_heads(index, heads);
    for (const int index : {at.key, at.value, at.new_key, at.new_value}) map_heads(index, groups);
    map_axis(at.sinks, 0, heads);
    if (shape_.descale_head_stride != 0)
      for (const int index : {at.query_descale, at.key_descale, at.value_descale}) map_axis(index, 1, groups);
  }

  /// Columns begin .. end-1 in a random order among themselves.
  void shuffle(std::vector<int32_t>& source, int64_t begin, int64_t end) {
    const auto order = op::random_permutation(static_cast<size_t>(end - begin), random_);
    for (size_t c = 0; c < order.size(); ++c)
      source[static_cast<size_t>(begin) + c] = static_cast<int32_t>(begin) + order[c];
  }

  /// Powers of two by which values may be scaled: small ones, so that the norm of a row still rests on many columns;
  /// none for e4m3 and fp16, whose small values would lose bits as subnormals.
  void scale_values(std::vector<float>& factor) {
    const Dtype dtype = view_.kv_dtype();
    if (dtype == Dtype::kF32 || dtype == Dtype::kBf16) op::scale_by_powers_of_two(factor, -1, 1, random_);
  }

  void move_columns() {
    const TensorIndex& at = view_.index;
    std::vector<int32_t> source(static_cast<size_t>(shape_.key_dim));
    std::iota(source.begin(), source.end(), 0);
    auto sign = op::random_signs(source.size(), random_);
    shuffle(source, shape_.rotary_dim, shape_.key_dim);
    if (shape_.rotary_dim > 0) move_pairs(source, sign);
    for (const int index : {at.query, at.key, at.new_key}) map_columns(index, source, sign);

    std::vector<int32_t> value_source(static_cast<size_t>(shape_.value_dim));
    shuffle(value_source, 0, shape_.value_dim);
    auto factor = op::random_signs(value_source.size(), random_);
    scale_values(factor);
    for (const int index : {at.value, at.new_value, at.output}) map_columns(index, value_source, factor);
  }

  /// Rotary pairs stay pairs: both columns move and flip together, and the angles with them.
  void move_pairs(std::vector<int32_t>& source, std::vector<float>& sign) {
    const int32_t half = shape_.rotary_dim / 2;
    const bool halves = shape_.rotary_style == KS_ROTARY_HALVES;
    const auto pairs = op::random_permutation(static_cast<size_t>(half), random_);
    for (int32_t p = 0; p < half; ++p) {
      const int32_t from = pairs[static_cast<size_t>(p)];
      const auto x = static_cast<size_t>(halves ? p : 2 * p), y = static_cast<size_t>(halves ? p + half : 2 * p + 1);
      source[x] = halves ? from : 2 * from;
      source[y] = halves ? from + half : 2 * from + 1;
      sign[y] = sign[x];
    }
    map_axis(view_.index.rotary_cos, 1, pairs);
    map_axis(view_.index.rotary_sin, 1, pairs);
  }

  /// MLA: the latent columns of a key are its value, so what scales them scales the output, and the query takes the
  /// inverse. The remaining columns move among themselves.
  void move_latent_columns() {
    const TensorIndex& at = view_.index;
    std::vector<int32_t> source(static_cast<size_t>(shape_.key_dim));
    shuffle(source, 0, shape_.latent_dim);
    shuffle(source, shape_.latent_dim, shape_.key_dim);
    const auto sign = op::random_signs(source.size(), random_);
    std::vector<float> key_factor(sign.begin(), sign.begin() + shape_.latent_dim);
    scale_values(key_factor);
    key_factor.insert(key_factor.end(), sign.begin() + shape_.latent_dim, sign.end());
    std::vector<float> query_factor;
    for (const float factor : key_factor) query_factor.push_back(1 / factor);
    map_columns(at.query, source, query_factor);
    map_columns(at.key, source, key_factor);
    const auto columns = static_cast<std::ptrdiff_t>(shape_.value_dim);
    map_columns(at.output, {source.begin(), source.begin() + columns},
                {key_factor.begin(), key_factor.begin() + columns});
  }

  const op::Problem& problem_;
  View view_;
  const ks_attention_fwd_shape& shape_;
  base::Random random_;
  std::vector<int32_t> members_;
  op::Symmetry symmetry_;
};

}  // namespace

op::Symmetry random_symmetry(const op::Problem& problem, const op::Buffers& buffers, uint64_t seed) {
  return Drawer(problem, buffers, seed).draw();
}

}  // namespace ks::attention_fwd
