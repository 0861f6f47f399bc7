// One row tile: up to kRowTile query rows (of all query heads of one kv head, heads of a position side by side) against
// every key block that one of them sees.
#pragma once
#include "pack.h"
#include "softmax.h"

namespace ks::attention_cpu {

/// Where in a thread's part of the scratch memory its things lie; in bytes.
struct Workspace {
  int64_t query, output, sums, states, scores, weights, room, block, bytes;
};

template <class Arithmetic>
Workspace workspace_of(const Shape& s) {
  const Layout layout = layout_of<Arithmetic>(s);
  Workspace w{};
  int64_t at = 0;
  const auto take = [&at](int64_t bytes) {
    const int64_t begin = at;
    at += round_up(bytes, 64);
    return begin;
  };
  w.query = take(layout.key_units * kRowTile * 4);
  w.output = take(layout.value_columns * kRowTile * 4);
  w.sums = take(kRowTile * kLanes * 4);
  w.states = take(kRowTile * static_cast<int64_t>(sizeof(RowState)));
  w.scores = take(kMicroRows * kKeyBlock * 4 + kMicroRows * kLanes * 4);
  w.weights = take(kMicroRows * kKeyBlock * 4);
  w.room = take(row_room<Arithmetic>(s) * 4);
  w.block = take(layout.block_units * 4);
  w.bytes = round_up(at, 256) + 256;  // not a power of two apart
  return w;
}

/// Everything about a call that all tiles share.
template <class Arithmetic>
struct Context {
  const Call& call;
  const Shape& s;
  Layout layout;
  Workspace workspace;
  typename Arithmetic::Unit* shared;  ///< packed blocks of members with many rows
  int64_t group;                      ///< query heads of a kv head
};

template <class Arithmetic>
class Tile {
 public:
  using Unit = typename Arithmetic::Unit;
  using Element = typename Arithmetic::Element;

  Tile(const Context<Arithmetic>& context, const Member& member, int64_t g, int64_t first, char* memory)
      : context_(context), s_(context.s), layout_(context.layout), member_(member), g_(g), memory_(memory) {
    rows_ = std::min<int64_t>(kRowTile, member.rows * context.group - first);
    states_ = at<RowState>(context.workspace.states);
    sums_ = at<float>(context.workspace.sums);
    output_ = at<float>(context.workspace.output);
    scores_ = at<float>(context.workspace.scores);
    largest_ = scores_ + kMicroRows * kKeyBlock;
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t row = (first + r) / context.group, head = g * context.group + (first + r) % context.group;
      states_[r] = {kNothing, visible_keys(s_, member, row), row, head};
    }
    set_scales();
  }

  /// `shared`: the member's packed blocks of this kv head, or null to pack each block here.
  void run(const Unit* shared, int64_t shared_stride) {
    const Interval keys{states_[0].keys.begin, std::max(states_[0].keys.begin, states_[rows_ - 1].keys.end)};
    load_queries();
    std::memset(output_, 0, sizeof(float) * static_cast<size_t>(rows_ * layout_.value_columns));
    std::memset(sums_, 0, sizeof(float) * static_cast<size_t>(rows_ * kLanes));
    for (int64_t block = keys.begin / kKeyBlock; block * kKeyBlock < keys.end; ++block) {
      const Unit* packed = shared + block * shared_stride;
      if (shared == nullptr) {
        auto* own = at<Unit>(context_.workspace.block);
        pack_block<Arithmetic>(context_.call, s_, layout_, member_, g_, block * kKeyBlock,
                               at<Unit>(context_.workspace.room), own);
        packed = own;
      }
      for (int64_t r = 0; r < rows_; r += kMicroRows) absorb(r, block * kKeyBlock, packed);
    }
    for (int64_t r = 0; r < rows_; ++r) finish(r);
  }

 private:
  template <class T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }

  void set_scales() {
    const int64_t d = member_.batch * s_.descale_batch_stride + g_ * s_.descale_head_stride;
    scale_ = s_.scale;
    if (s_.has_descale != 0) {
      scale_ *= context_.call.key_descale[d];
      if (context_.call.query_descale != nullptr) scale_ *= context_.call.query_descale[d];
      value_scale_ = context_.call.value_descale[d];
    }
    capped_ = s_.softcap > 0 || !(scale_ > 0);
  }

  /// Query rows one behind the other, in the type of the arithmetic.
  void load_queries() {
    auto* room = at<float>(context_.workspace.block);
    const int64_t columns = layout_.key_units * Arithmetic::kPerUnit;
    for (int64_t r = 0; r < rows_; ++r) {
      Element* row = at<Element>(context_.workspace.query) + r * columns;
      if constexpr (Arithmetic::kPerUnit == 1) {
        load_query(context_.call, s_, member_, states_[r].row, states_[r].head, row);
      } else {
        load_query(context_.call, s_, member_, states_[r].row, states_[r].head, room);
        for (int64_t c = 0; c < s_.key_dim; ++c) row[c] = to_bf16(room[c]);
        if (columns > s_.key_dim) row[s_.key_dim] = 0;
      }
    }
  }

  /// Rows r .. r + kMicroRows - 1 against one key block.
  void absorb(int64_t r, int64_t start, const Unit* packed) {
    const int count = static_cast<int>(std::min<int64_t>(kMicroRows, rows_ - r));
    const RowState &first = states_[r], &last = states_[r + count - 1];
    const int64_t begin = std::max(first.keys.begin - start, int64_t{0});
    const int64_t end = std::min<int64_t>(last.keys.end - start, kKeyBlock);
    if (begin >= end) return;
    const int64_t from = begin / kLanes * kLanes, to = round_up(end, kLanes);
    const bool masked = last.keys.begin > start + from || first.keys.end < start + to;
    score(r, count, from, to, packed);
    for (int i = 0; i < count; ++i) soften(r + i, i, start, from, to, masked);
    const Unit* weights = at<Unit>(context_.workspace.weights) + begin / Arithmetic::kPerUnit;
    const int64_t units = (end + Arithmetic::kPerUnit - 1) / Arithmetic::kPerUnit - begin / Arithmetic::kPerUnit;
    const Unit* values = packed + layout_.values_offset + begin / Arithmetic::kPerUnit * layout_.value_columns;
    with_constant<kMicroRows>(count, [&](auto rows) {
      for (int64_t c = 0; c < layout_.value_columns; c += kPanelKeys) {
        const auto vectors = static_cast<int>(std::min<int64_t>(layout_.value_columns - c, kPanelKeys) / kLanes);
        with_constant<kPanelVectors>(vectors, [&](auto wide) {
          add_values<Arithmetic, rows.value, wide.value>(weights, values + c, layout_.value_columns, units,
                                                         output_ + r * layout_.value_columns + c);
        });
      }
    });
  }

  void score(int64_t r, int count, int64_t from, int64_t to, const Unit* packed) {
    const Unit* query = at<Unit>(context_.workspace.query) + r * layout_.key_units;
    for (int i = 0; i < count * kLanes; i += kLanes) hn::StoreU(hn::Set(kFloats, kNothing), kFloats, largest_ + i);
    with_constant<kMicroRows>(count, [&](auto rows) {
      for (int64_t j = from; j < to;) {
        const int64_t panel_end = std::min(to, j / kPanelKeys * kPanelKeys + kPanelKeys);
        const Unit* panel = packed + j / kPanelKeys * kPanelKeys * layout_.key_units + j % kPanelKeys;
        with_constant<kPanelVectors>(static_cast<int>((panel_end - j) / kLanes), [&](auto wide) {
          score_panel<Arithmetic, rows.value, wide.value>(query, panel, layout_.key_units, scores_ + j, largest_);
        });
        j = panel_end;
      }
    });
  }

  /// Scores of row r, the micro tile's i-th, become weights.
  void soften(int64_t r, int i, int64_t start, int64_t from, int64_t to, bool masked) {
    RowState& state = states_[r];
    float *scores = scores_ + i * kKeyBlock, *largest = largest_ + i * kLanes, *sum = sums_ + r * kLanes;
    if (capped_) cap_scores(scale_, s_.softcap, scores, from, to, largest);
    if (masked) mask_scores({state.keys.begin - start, state.keys.end - start}, scores, from, to, largest);
    const float to_log2 = capped_ ? 1.0f : scale_ * kLog2E;
    const Vec top = hn::Mul(hn::LoadU(kFloats, largest), hn::Set(kFloats, to_log2));
    if (!hn::AllTrue(kFloats, hn::Le(top, hn::Set(kFloats, state.maximum + Arithmetic::kSlack)))) {
      const float score = hn::GetLane(hn::MaxOfLanes(kFloats, top));
      if (score > state.maximum)
        raise_maximum(score, state, sum, output_ + r * layout_.value_columns, layout_.value_columns);
    }
    Element* weights = at<Element>(context_.workspace.weights) + i * kKeyBlock;
    if (masked)
      weigh<Arithmetic, true>(scores, to_log2, state.maximum, from, to, weights, sum);
    else
      weigh<Arithmetic, false>(scores, to_log2, state.maximum, from, to, weights, sum);
  }

  void finish(int64_t r) {
    const RowState& state = states_[r];
    float sum = hn::GetLane(hn::SumOfLanes(kFloats, hn::LoadU(kFloats, sums_ + r * kLanes)));
    float maximum = state.maximum, factor = maximum == kNothing ? 0.0f : 1.0f;
    if (s_.has_sinks != 0) {
      float sink;
      load_row(context_.call.sinks, s_.query_dtype == KS_E4M3 ? KS_BF16 : s_.query_dtype, state.head, 1, &sink);
      const float top = std::max(maximum, sink * kLog2E);
      factor = maximum == kNothing ? 0.0f : std::exp2(maximum - top);
      sum = sum * factor + std::exp2(sink * kLog2E - top);
      maximum = top;
    }
    const int64_t row = member_.first_row + state.row;
    float* lse = context_.call.lse + member_.batch * s_.lse_batch_stride + state.head * s_.lse_head_stride +
                 row * s_.lse_row_stride;
    *lse =
        sum > 0 ? static_cast<float>((static_cast<double>(maximum) + std::log2(sum)) / 1.4426950408889634) : kNothing;
    float* output = output_ + r * layout_.value_columns;
    if (factor == 0) std::memset(output, 0, sizeof(float) * static_cast<size_t>(layout_.value_columns));
    store_row(context_.call.output, s_.output_dtype,
              member_.batch * s_.output_batch_stride + row * s_.output_row_stride + state.head * s_.output_head_stride,
              s_.value_dim, output, factor == 0 ? 0.0f : factor / sum * value_scale_);
  }

  const Context<Arithmetic>& context_;
  const Shape& s_;
  const Layout& layout_;
  const Member& member_;
  const int64_t g_;
  char* memory_;
  int64_t rows_ = 0;
  RowState* states_;
  float *sums_, *output_, *scores_, *largest_;
  float scale_ = 1, value_scale_ = 1;
  bool capped_ = false;
};

}  // namespace ks::attention_cpu
