// The fast reference: tiles of rows of one kv head against blocks of keys, everything in float64, a running maximum as
// in any flash attention. Blocks that no row of a tile sees are never touched, so what lies there may be anything.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/hash.h"
#include "operators/attention_fwd/reference.h"
#include "operators/attention_fwd/rotary.h"
#include "operators/attention_fwd/tile_math.h"
#include "operators/parallel.h"

namespace ks::attention_fwd {
namespace {

constexpr int64_t kTileRows = 64;
constexpr int64_t kBlockKeys = 64;
constexpr double kMasked = -1e300;

int64_t round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

struct RowId {
  int64_t i, h;
};

/// Rows of one kv head of one member that are solved together.
struct Tile {
  int64_t b = 0, g = 0;
  std::vector<RowId> rows;
};

/// Working memory and state of one tile.
class TileSolver {
 public:
  TileSolver(const View& view, const Tile& tile) : view_(view), shape_(*view.shape), tile_(tile) {
    rows_ = static_cast<int64_t>(tile.rows.size());
    padded_rows_ = round_up(rows_, kTileStepRows);
    value_columns_ = round_up(shape_.value_dim, kTileStepColumns);
    query_.assign(static_cast<size_t>(padded_rows_ * shape_.key_dim), 0.0);
    scores_.assign(static_cast<size_t>(padded_rows_ * kBlockKeys), 0.0);
    keys_.assign(static_cast<size_t>(shape_.key_dim * kBlockKeys), 0.0);
    values_.assign(static_cast<size_t>(kBlockKeys * value_columns_), 0.0);
    output_.assign(static_cast<size_t>(padded_rows_ * value_columns_), 0.0);
    largest_.assign(static_cast<size_t>(rows_), kMasked);
    sum_.assign(static_cast<size_t>(rows_), 0.0);
  }

  void solve() {
    int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
    for (int64_t r = 0; r < rows_; ++r) {
      load_query(r);
      const Visible visible = view_.visible(tile_.b, tile_.rows[static_cast<size_t>(r)].i);
      visible_.push_back(visible);
      if (visible.count() == 0) continue;
      first = std::min(first, visible.first);
      last = std::max(last, visible.last);
    }
    for (int64_t block = first; block <= last; block += kBlockKeys) {
      const int64_t count = std::min(kBlockKeys, last + 1 - block);
      if (sees_any(block, count)) add_block(block, count);
    }
  }

  void store(op::Expected& expected) const {
    auto& outputs = expected.tensors[static_cast<size_t>(view_.index.output)];
    auto& lses = expected.tensors[static_cast<size_t>(view_.index.lse)];
    for (int64_t r = 0; r < rows_; ++r) {
      const RowId id = tile_.rows[static_cast<size_t>(r)];
      const auto row = static_cast<size_t>(view_.output_row(tile_.b, id.i, id.h));
      double largest = largest_[static_cast<size_t>(r)], sum = sum_[static_cast<size_t>(r)], share = 1;
      if (!view_.sinks.empty()) {
        const double sink = view_.sinks[static_cast<size_t>(id.h)];
        const double most = std::max(largest, sink);
        share = std::exp(largest - most);
        sum = sum * share + std::exp(sink - most);
        largest = most;
      }
      lses.values[row] =
          sum == 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(largest + std::log(sum));
      const double factor = sum == 0 ? 0 : share * view_.value_scale(tile_.b, tile_.g) / sum;
      float* out = outputs.values.data() + row * static_cast<size_t>(shape_.value_dim);
      const double* from = output_.data() + r * value_columns_;
      for (int64_t c = 0; c < shape_.value_dim; ++c) out[c] = static_cast<float>(from[c] * factor);
    }
  }

 private:
  /// The scale is folded into the query.
  void load_query(int64_t r) {
    const RowId id = tile_.rows[static_cast<size_t>(r)];
    double* row = query_.data() + r * shape_.key_dim;
    const auto offset = static_cast<size_t>(view_.query_offset(tile_.b, id.i, id.h));
    widen(view_.query + offset * core::dtype_bytes(view_.query_dtype()), view_.query_dtype(), shape_.key_dim, row);
    if (shape_.rotary_style != KS_ROTARY_NONE)
      rotate_row(view_, view_.keys[static_cast<size_t>(tile_.b)] - shape_.new_keys + id.i, row);
    const double scale = static_cast<double>(shape_.scale) * view_.score_descale(tile_.b, tile_.g);
    for (int64_t c = 0; c < shape_.key_dim; ++c) row[c] *= scale;
  }

  bool sees_any(int64_t block, int64_t count) const {
    return std::any_of(visible_.begin(), visible_.end(), [&](const Visible& visible) {
      return visible.first < block + count && visible.last >= block && visible.count() > 0;
    });
  }

  void load_block(int64_t block, int64_t count) {
    const size_t element = core::dtype_bytes(view_.kv_dtype());
    if (count < kBlockKeys) std::fill(keys_.begin(), keys_.end(), 0.0);
    for (int64_t j = 0; j < count; ++j) {
      const auto key = static_cast<size_t>(view_.key_offset(tile_.b, block + j, tile_.g));
      const auto value = static_cast<size_t>(view_.value_offset(tile_.b, block + j, tile_.g));
      widen_into_column(view_.key + key * element, view_.kv_dtype(), shape_.key_dim, keys_.data() + j, kBlockKeys);
      widen(view_.value + value * element, view_.kv_dtype(), shape_.value_dim, values_.data() + j * value_columns_);
    }
  }

  void add_block(int64_t block, int64_t count) {
    load_block(block, count);
    const int64_t padded = round_up(count, kTileStepColumns);
    std::fill(scores_.begin(), scores_.end(), 0.0);
    multiply_add({scores_.data(), kBlockKeys}, {query_.data(), shape_.key_dim}, {keys_.data(), kBlockKeys},
                 padded_rows_, shape_.key_dim, padded);
    for (int64_t r = 0; r < rows_; ++r) weigh_row(r, block, padded);
    multiply_add({output_.data(), value_columns_}, {scores_.data(), kBlockKeys}, {values_.data(), value_columns_},
                 padded_rows_, count, value_columns_);
  }

  /// Scores of one row become weights; what was summed before is rescaled to the new maximum.
  void weigh_row(int64_t r, int64_t block, int64_t padded) {
    double* scores = scores_.data() + r * kBlockKeys;
    if (shape_.softcap > 0) cap_scores(scores, padded, shape_.softcap);
    const Visible& visible = visible_[static_cast<size_t>(r)];
    const int64_t first = std::clamp<int64_t>(visible.first - block, 0, padded);
    const int64_t end = std::clamp<int64_t>(visible.last + 1 - block, 0, padded);
    std::fill(scores, scores + first, kMasked);
    std::fill(scores + std::max(first, end), scores + padded, kMasked);
    double& largest = largest_[static_cast<size_t>(r)];
    const double most = std::max(largest, *std::max_element(scores, scores + padded));
    if (most > largest && largest > kMasked) {
      const double shrink = std::exp(largest - most);
      sum_[static_cast<size_t>(r)] *= shrink;
      double* out = output_.data() + r * value_columns_;
      for (int64_t c = 0; c < value_columns_; ++c) out[c] *= shrink;
    }
    largest = most;
    if (most == kMasked) return std::fill(scores, scores + padded, 0.0);
    sum_[static_cast<size_t>(r)] += exponentials(scores, padded, most);
  }

  const View& view_;
  const ks_attention_fwd_shape& shape_;
  const Tile& tile_;
  int64_t rows_ = 0, padded_rows_ = 0, value_columns_ = 0;
  std::vector<double> query_, scores_, keys_, values_, output_, largest_, sum_;
  std::vector<Visible> visible_;
};

/// Cuts sorted rows of one kv head into tiles.
void cut(int64_t b, int64_t g, const std::vector<RowId>& rows, std::vector<Tile>& tiles) {
  for (size_t start = 0; start < rows.size(); start += kTileRows) {
    const size_t end = std::min(rows.size(), start + kTileRows);
    tiles.push_back(
        {b, g, {rows.begin() + static_cast<std::ptrdiff_t>(start), rows.begin() + static_cast<std::ptrdiff_t>(end)}});
  }
}

std::vector<Tile> all_tiles(const View& view) {
  std::vector<Tile> tiles;
  for (int64_t b = 0; b < view.shape->batch; ++b)
    for (int64_t g = 0; g < view.shape->kv_heads; ++g) {
      std::vector<RowId> rows;
      for (int64_t i = 0; i < view.rows[static_cast<size_t>(b)]; ++i)
        for (int64_t h = 0; h < view.group(); ++h) rows.push_back({i, g * view.group() + h});
      cut(b, g, rows, tiles);
    }
  return tiles;
}

/// Rows spread over the members in turn; a quarter of them are the first or the last row of their member, where masks
/// go wrong.
std::vector<Tile> sampled_tiles(const View& view, const op::Coverage& coverage) {
  base::Random random(coverage.seed);
  std::vector<int64_t> members;
  for (int64_t b = 0; b < view.shape->batch; ++b)
    if (view.rows[static_cast<size_t>(b)] > 0) members.push_back(b);
  std::map<std::pair<int64_t, int64_t>, std::vector<RowId>> chosen;
  const auto start = static_cast<int64_t>(random.below(members.size()));
  for (int64_t k = 0; k < coverage.sampled_rows; ++k) {
    const int64_t b = members[static_cast<size_t>((start + k) % static_cast<int64_t>(members.size()))];
    const auto rows = static_cast<uint64_t>(view.rows[static_cast<size_t>(b)]);
    auto i = static_cast<int64_t>(random.below(rows));
    const uint64_t kind = random.below(8);
    if (kind < 2) i = kind == 0 ? 0 : static_cast<int64_t>(rows) - 1;
    const auto h = static_cast<int64_t>(random.below(static_cast<uint64_t>(view.shape->query_heads)));
    chosen[{b, h / view.group()}].push_back({i, h});
  }
  std::vector<Tile> tiles;
  for (auto& [where, rows] : chosen) {
    std::sort(rows.begin(), rows.end(), [](RowId x, RowId y) { return x.i != y.i ? x.i < y.i : x.h < y.h; });
    cut(where.first, where.second, rows, tiles);
  }
  return tiles;
}

void keep_cache(const View& after, int tensor, int64_t columns, op::Expected& expected) {
  if (tensor < 0) return;
  auto& rows = expected.tensors[static_cast<size_t>(tensor)];
  rows.unchanged = written_rows(after);
  for (auto& flag : rows.unchanged) flag = flag != 0 ? 0 : 1;
  rows.values.resize(rows.unchanged.size() * static_cast<size_t>(columns));
  const std::byte* bytes = tensor == after.index.key ? after.key : after.value;
  core::to_floats(bytes, after.kv_dtype(), rows.values.size(), rows.values.data());
}

}  // namespace

op::Expected solve(const op::Problem& problem, const op::Buffers& buffers, const op::Coverage& coverage, int threads) {
  const bool appends = shape_of(problem).new_keys > 0;
  const op::Buffers appended = appends ? append_keys(problem, buffers) : op::Buffers{};
  const View view(problem, appends ? appended : buffers);
  op::Expected expected;
  expected.tensors.resize(problem.tensors.size());
  auto& outputs = expected.tensors[static_cast<size_t>(view.index.output)];
  auto& lses = expected.tensors[static_cast<size_t>(view.index.lse)];
  const auto rows = static_cast<size_t>(view.shape->total_rows * view.shape->query_heads);
  outputs.values.assign(rows * static_cast<size_t>(view.shape->value_dim), 0.0f);
  lses.values.assign(rows, 0.0f);

  const bool sampled =
      coverage.kind == op::Coverage::Kind::kSampledRows && coverage.sampled_rows < static_cast<int64_t>(rows);
  const std::vector<Tile> tiles = sampled ? sampled_tiles(view, coverage) : all_tiles(view);
  if (sampled) {
    outputs.known.assign(rows, 0);
    for (const Tile& tile : tiles)
      for (const RowId id : tile.rows) outputs.known[static_cast<size_t>(view.output_row(tile.b, id.i, id.h))] = 1;
    lses.known = outputs.known;
  }
  op::parallel_tasks(static_cast<int64_t>(tiles.size()), threads, [&](int64_t t) {
    TileSolver solver(view, tiles[static_cast<size_t>(t)]);
    solver.solve();
    solver.store(expected);
  });
  if (appends) {
    keep_cache(view, view.index.key, view.shape->key_dim, expected);
    keep_cache(view, view.index.value, view.shape->value_dim, expected);
  }
  return expected;
}

}  // namespace ks::attention_fwd
