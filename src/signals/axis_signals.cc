#include "signals/axis_signals.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/grid.h"
#include "signals/record_signals.h"

namespace ks::signals {
namespace {

using core::ScenarioResult;
using Values = std::map<std::string, std::string>;

const std::string& value_of(const Values& values, const std::string& column) {
  static const std::string kNone;
  const auto found = values.find(column);
  return found == values.end() ? kNone : found->second;
}

bool is_ragged(const std::string& text) {
  return text.find_first_of(",+~") != std::string::npos || text.find("..") != std::string::npos;
}

Columns sort_columns(const std::vector<const Values*>& rows) {
  std::map<std::string, int> numeric;
  for (const auto* row : rows)
    for (const auto& [column, text] : *row)
      if (column != "note") numeric[column] += numbers_of(text) ? 1 : -1;
  Columns columns;
  for (const auto& [column, balance] : numeric) (balance > 0 ? columns.sizes : columns.switches).push_back(column);
  return columns;
}

std::vector<std::string> all_columns(const Columns& columns) {
  std::vector<std::string> all = columns.sizes;
  all.insert(all.end(), columns.switches.begin(), columns.switches.end());
  return all;
}

/// The row's values but those of `left_out`, as a key.
std::string key_without(const Values& values, const Columns& columns, const std::vector<std::string>& left_out) {
  std::string key;
  for (const auto& column : all_columns(columns))
    if (std::find(left_out.begin(), left_out.end(), column) == left_out.end()) key += value_of(values, column) + '\t';
  return key;
}

/// Groups of rows that differ in the named columns alone, where these hold one and the same size.
void add_axes(const core::Evaluation& record, const Columns& columns, const std::vector<std::string>& along,
              std::vector<SizeAxis>& axes) {
  std::map<std::string, std::map<double, const ScenarioResult*>> groups;
  for (const auto& row : record.scenarios) {
    const auto size = numbers_of(value_of(row.values, along.front()));
    bool same = size.has_value();
    for (const auto& column : along) same &= value_of(row.values, column) == value_of(row.values, along.front());
    if (same) groups[key_without(row.values, columns, along)].try_emplace(size->front(), &row);
  }
  for (const auto& [key, rows] : groups) {
    if (rows.size() < 2) continue;
    SizeAxis axis{along.size() == 1 ? along.front() : along.front() + "=" + along.back(), {}, {}};
    for (const auto& [size, row] : rows) axis.sizes.push_back(size), axis.rows.push_back(row);
    axes.push_back(std::move(axis));
  }
}

/// Least-squares slope.
std::optional<double> slope_of(const std::vector<std::pair<double, double>>& points) {
  if (points.size() < 3) return std::nullopt;
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [px, py] : points) x += px / n, y += py / n;
  for (const auto& [px, py] : points) xx += (px - x) * (px - x), xy += (px - x) * (py - y);
  if (xx < 1e-12) return std::nullopt;
  return xy / xx;
}

/// True where no size of `a` exceeds that of `b`, one is smaller, and all else is equal.
bool is_smaller(const ScenarioResult& a, const ScenarioResult& b, const Columns& columns) {
  for (const auto& column : columns.switches)
    if (value_of(a.values, column) != value_of(b.values, column)) return false;
  bool smaller = false;
  for (const auto& column : columns.sizes) {
    const std::string &text_a = value_of(a.values, column), &text_b = value_of(b.values, column);
    if (text_a == text_b) continue;
    const auto size_a = numbers_of(text_a), size_b = numbers_of(text_b);
    if (!size_a || !size_b || size_a->size() != size_b->size()) return false;
    for (size_t i = 0; i < size_a->size(); ++i) {
      if ((*size_a)[i] > (*size_b)[i]) return false;
      smaller |= (*size_a)[i] < (*size_b)[i];
    }
  }
  return smaller;
}

int count_sizes(const std::vector<SizeAxis>& axes) {
  size_t most = 1;
  for (const auto& axis : axes) most = std::max(most, axis.sizes.size());
  return static_cast<int>(most);
}

/// Greatest common divisor of all sizes of 16 and more; 0 where there is none.
int64_t common_divisor(const core::Evaluation& record, const Columns& columns) {
  int64_t divisor = 0;
  for (const auto& row : record.scenarios)
    for (const auto& column : columns.sizes)
      if (const auto sizes = numbers_of(value_of(row.values, column)))
        for (const double size : *sizes)
          if (size >= 16) divisor = std::gcd(divisor, static_cast<int64_t>(size));
  return divisor;
}

int count_edges(const core::Evaluation& record, const OperatorGrids& grids) {
  int count = 0;
  for (const auto& row : record.scenarios) {
    bool edge = false;
    for (const auto& [column, range] : grids.size_range)
      if (const auto sizes = numbers_of(value_of(row.values, column)))
        for (const double size : *sizes) edge |= size <= range.first || size >= range.second;
    count += edge;
  }
  return count;
}

void learn_row(const core::Scenario& row, OperatorGrids& grids) {
  for (const auto& column : grids.columns.switches)
    for (const auto& feature : features_of(value_of(row.values, column))) grids.features[column].insert(feature);
  for (const auto& column : grids.columns.sizes) {
    const std::string& text = value_of(row.values, column);
    grids.has_ragged |= is_ragged(text);
    const auto sizes = numbers_of(text);
    if (!sizes) continue;
    auto [range, fresh] = grids.size_range.try_emplace(column, sizes->front(), sizes->front());
    for (const double size : *sizes) {
      range->second.first = std::min(range->second.first, size);
      range->second.second = std::max(range->second.second, size);
    }
  }
}

}  // namespace

std::optional<std::vector<double>> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    double number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (next < end && *next != '/')) return std::nullopt;
    numbers.push_back(number);
    at = next < end ? next + 1 : next;
  }
  if (numbers.empty()) return std::nullopt;
  return numbers;
}

std::set<std::string> features_of(const std::string& text) {
  std::set<std::string> features;
  std::string word;
  int depth = 0;
  const auto close = [&] {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    std::string bare = word;
    while (!bare.empty() && is_digit(bare.back())) bare.pop_back();
    // "paged16" is paged; "bf16" and "e4m3" stay, they are names; a number alone is a parameter.
    const bool is_name = bare.size() <= 2 || std::any_of(bare.begin(), bare.end(), is_digit);
    if (!bare.empty()) features.insert(is_name ? word : bare);
    word.clear();
  };
  for (const char c : text + " ") {
    if (c == '(')
      ++depth;
    else if (c == ')')
      --depth;
    else if (depth == 0 && (c == ' ' || c == '+' || c == ',' || c == '/'))
      close();
    else if (depth == 0)
      word += c;
  }
  return features;
}

std::optional<OperatorGrids> read_operator_grids(const std::string& operator_name) {
  const auto folder = base::project_root() / "operators" / operator_name / "grids";
  std::error_code error;
  std::vector<core::Scenario> rows;
  for (const auto& entry : base::fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".tsv")
      for (auto& row : core::read_grid(entry.path()).scenarios) rows.push_back(std::move(row));
  if (rows.empty()) return std::nullopt;
  std::vector<const Values*> values;
  for (const auto& row : rows) values.push_back(&row.values);
  OperatorGrids grids;
  grids.columns = sort_columns(values);
  for (const auto& row : rows) learn_row(row, grids);
  return grids;
}

AxisView::AxisView(const core::Evaluation& record) : record_(&record) {
  std::vector<const Values*> rows;
  for (const auto& row : record.scenarios) rows.push_back(&row.values);
  columns_ = sort_columns(rows);
  for (size_t i = 0; i < columns_.sizes.size(); ++i) {
    add_axes(record, columns_, {columns_.sizes[i]}, axes_);
    for (size_t k = i + 1; k < columns_.sizes.size(); ++k)
      add_axes(record, columns_, {columns_.sizes[i], columns_.sizes[k]}, axes_);
  }
}

std::vector<std::string> AxisView::unswept() const {
  std::vector<std::string> result;
  for (const auto& column : all_columns(columns_)) {
    std::map<std::string, std::set<std::string>> seen;
    bool swept = false;
    for (const auto& row : record_->scenarios) {
      auto& values = seen[key_without(row.values, columns_, {column})];
      values.insert(value_of(row.values, column));
      swept |= values.size() > 1;
    }
    if (!swept) result.push_back(column);
  }
  return result;
}

std::optional<SwitchPair> AxisView::widest_switch() const {
  std::optional<SwitchPair> widest;
  for (const auto& column : columns_.switches) {
    std::map<std::string, std::vector<const ScenarioResult*>> groups;
    for (const auto* row : by_ratio(*record_)) groups[key_without(row->values, columns_, {column})].push_back(row);
    for (const auto& [key, rows] : groups) {
      // Lowest ratio first, so the ends are the widest pair.
      const ScenarioResult *slow = rows.front(), *fast = rows.back();
      if (value_of(slow->values, column) == value_of(fast->values, column)) continue;
      const double gap = 1 - ratio_of(*slow)->value / ratio_of(*fast)->value;
      if (!widest || gap > widest->gap) widest = SwitchPair{column, slow, fast, gap};
    }
  }
  return widest;
}

std::optional<RowPair> AxisView::slower_though_smaller(double noise_rel) const {
  std::optional<RowPair> worst;
  for (const auto& a : record_->scenarios) {
    if (!a.candidate.time_us) continue;
    for (const auto& b : record_->scenarios) {
      if (!b.candidate.time_us || !is_smaller(a, b, columns_)) continue;
      const double factor = *a.candidate.time_us / *b.candidate.time_us;
      if (factor > 1 + 2 * noise_rel && (!worst || factor > worst->value)) worst = RowPair{&a, &b, factor, ""};
    }
  }
  return worst;
}

std::optional<RowPair> AxisView::widest_neighbours() const {
  std::optional<RowPair> widest;
  const auto rate = [](const ScenarioResult& row) -> std::optional<double> {
    if (!row.flops || !row.candidate.time_us || *row.candidate.time_us <= 0 || *row.flops <= 0) return std::nullopt;
    return *row.flops / *row.candidate.time_us;
  };
  for (const auto& axis : axes_) {
    for (size_t i = 1; i < axis.rows.size(); ++i) {
      const auto a = rate(*axis.rows[i - 1]), b = rate(*axis.rows[i]);
      if (!a || !b) continue;
      const double factor = std::max(*a / *b, *b / *a);
      if (widest && factor <= widest->value) continue;
      widest = *a < *b ? RowPair{axis.rows[i - 1], axis.rows[i], factor, axis.name}
                       : RowPair{axis.rows[i], axis.rows[i - 1], factor, axis.name};
    }
  }
  return widest;
}

std::optional<RowPair> AxisView::worst_exponent() const {
  std::optional<RowPair> worst;
  for (const auto& axis : axes_) {
    std::vector<std::pair<double, double>> points;
    for (const auto* row : axis.rows)
      if (row->candidate.time_us && row->bound_us && *row->bound_us > 0)
        points.emplace_back(std::log(*row->bound_us), std::log(*row->candidate.time_us));
    const auto slope = slope_of(points);
    if (slope && (!worst || std::fabs(*slope - 1) > worst->value))
      worst = RowPair{axis.rows.front(), axis.rows.back(), std::fabs(*slope - 1), axis.name};
  }
  return worst;
}

std::optional<RowPair> AxisView::steepest_error() const {
  std::optional<RowPair> worst;
  for (const auto& axis : axes_) {
    std::vector<std::pair<double, double>> points;
    for (size_t i = 0; i < axis.rows.size(); ++i)
      if (const auto& error = axis.rows[i]->candidate.error; error && error->mean > 0 && axis.sizes[i] > 0)
        points.emplace_back(std::log(axis.sizes[i]), std::log(error->mean));
    const auto slope = slope_of(points);
    if (slope && (!worst || *slope > worst->value))
      worst = RowPair{axis.rows.front(), axis.rows.back(), *slope, axis.name};
  }
  return worst;
}

std::vector<std::string> features_never(const core::Evaluation& record, const OperatorGrids& grids) {
  std::vector<std::string> never;
  for (const auto& [column, features] : grids.features) {
    std::set<std::string> used;
    for (const auto& row : record.scenarios) used.merge(features_of(value_of(row.values, column)));
    for (const auto& feature : features)
      if (!used.contains(feature)) never.push_back(column + ": " + feature);
  }
  return never;
}

void add_axis_signals(const core::Evaluation& record, const OperatorGrids* grids, std::optional<double> noise_rel,
                      const std::string& origin, SignalSet& signals) {
  if (record.scenarios.size() < 2) return;
  const AxisView view(record);
  signals.set("axes_unswept", static_cast<double>(view.unswept().size()), origin);
  signals.set("n_sizes", static_cast<double>(count_sizes(view.axes())), origin);
  if (const auto divisor = common_divisor(record, view.columns()); divisor > 0)
    signals.set("sizes_all_regular", divisor >= 16, origin);
  if (const auto pair = view.widest_switch()) signals.set("feature_gap_rel", pair->gap, origin);
  if (const auto pair = view.widest_neighbours()) signals.set("neighbour_drop", pair->value, origin);
  if (const auto pair = view.worst_exponent()) signals.set("size_exponent_error", pair->value, origin);
  if (const auto pair = view.steepest_error()) signals.set("err_slope", pair->value, origin);
  if (noise_rel && is_timed(record))
    signals.set("nonmonotone", view.slower_though_smaller(*noise_rel).has_value(), origin);
  if (const auto rows = by_ratio(record); rows.size() > 1) {
    const auto &slow = *rows.front(), &fast = *rows.back();
    if (slow.bound_us && fast.bound_us && *slow.bound_us > 0 && *fast.bound_us > 0) {
      const double times = *slow.candidate.time_us / *fast.candidate.time_us;
      signals.set("work_ratio_error", std::fabs(times / (*slow.bound_us / *fast.bound_us) - 1), origin);
    }
  }
  if (grids == nullptr) return;
  const std::string with_grids = origin + " beside the operator's grids";
  signals.set("scenario_features_never", static_cast<double>(features_never(record, *grids).size()), with_grids);
  signals.set("edge_sizes_run", static_cast<double>(count_edges(record, *grids)), with_grids);
  if (!grids->has_ragged) return;
  bool ragged = false;
  for (const auto& row : record.scenarios)
    for (const auto& column : grids->columns.sizes) ragged |= is_ragged(value_of(row.values, column));
  signals.set("batch_all_uniform", !ragged, origin);
}

}  // namespace ks::signals
