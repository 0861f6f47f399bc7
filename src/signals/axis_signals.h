// Signals about the shape of the grid and what moves along its axes: which columns vary alone, whether time follows the
// work, which features of the operator no row has. A column is a size where most of its values are numbers ("128",
// "32/8"), else a switch ("causal", "paged16"); name, category and note are neither.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/record.h"
#include "signals/signal_set.h"

namespace ks::signals {

/// Rows that differ in one size alone (or in two sizes that are equal in each row, such as the lengths of a square),
/// smallest first.
struct SizeAxis {
  std::string name;  ///< "Sk", "Sq=Sk"
  std::vector<const core::ScenarioResult*> rows;
  std::vector<double> sizes;
};

/// Two rows that differ in one switch alone.
struct SwitchPair {
  std::string column;
  const core::ScenarioResult* slow = nullptr;  ///< the one with the lower ratio
  const core::ScenarioResult* fast = nullptr;
  double gap = 0;  ///< 1 - ratio of the slow one / ratio of the fast one
};

/// Two rows, and how much they differ from what is expected.
struct RowPair {
  const core::ScenarioResult* first = nullptr;
  const core::ScenarioResult* second = nullptr;
  double value = 0;
  std::string axis;
};

/// The columns of a set of rows, sorted into sizes and switches.
struct Columns {
  std::vector<std::string> sizes, switches;
};

/// The numbers of "128" or "32/8"; nothing where the text is anything else.
std::optional<std::vector<double>> numbers_of(const std::string& text);

/// The words of a switch without their parameters: "win(127,0) sink" gives win and sink, "paged16" paged.
std::set<std::string> features_of(const std::string& text);

/// What the grids of an operator use between them, from its folder's grids/*.tsv.
struct OperatorGrids {
  Columns columns;
  std::map<std::string, std::set<std::string>> features;        ///< by switch
  std::map<std::string, std::pair<double, double>> size_range;  ///< by size
  bool has_ragged = false;                                      ///< some row's members differ in size
};

/// Nothing where the operator has no folder in this tree.
std::optional<OperatorGrids> read_operator_grids(const std::string& operator_name);

/// One record seen along its axes.
class AxisView {
 public:
  explicit AxisView(const core::Evaluation& record);

  const Columns& columns() const { return columns_; }
  const std::vector<SizeAxis>& axes() const { return axes_; }
  /// Columns that no pair of rows varies alone.
  std::vector<std::string> unswept() const;
  /// The pair of rows with the largest difference of ratio by one switch.
  std::optional<SwitchPair> widest_switch() const;
  /// A smaller problem that takes longer than a larger one: the pair with the largest factor of times.
  std::optional<RowPair> slower_though_smaller(double noise_rel) const;
  /// Neighbours on an axis with the largest factor of operations a second.
  std::optional<RowPair> widest_neighbours() const;
  /// Axis from three sizes on with the largest |fitted exponent of time against its bound - 1|.
  std::optional<RowPair> worst_exponent() const;
  /// Axis from three sizes on with the steepest growth of the error with the size.
  std::optional<RowPair> steepest_error() const;

 private:
  const core::Evaluation* record_;
  Columns columns_;
  std::vector<SizeAxis> axes_;
};

/// Sets the signals of this file. `grids` may be null.
void add_axis_signals(const core::Evaluation& record, const OperatorGrids* grids, std::optional<double> noise_rel,
                      const std::string& origin, SignalSet& signals);

/// Features (as "column: word") of the operator's grids that no row of the record has.
std::vector<std::string> features_never(const core::Evaluation& record, const OperatorGrids& grids);

}  // namespace ks::signals
