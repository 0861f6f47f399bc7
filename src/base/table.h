// Text tables for the terminal: aligned columns that fit the width at hand.
#pragma once

#include <string>
#include <vector>

namespace ks::base {

/// Rows of cells, printed with columns aligned; numbers right, words left.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// The table, each line at most `width` columns: the widest columns are shortened to fit. Where that would leave
  /// nothing to read, row by row instead, a line for each cell.
  std::string text(size_t width = 0) const;

 private:
  std::string row_by_row(size_t width) const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns of the terminal at standard output: $COLUMNS, else the terminal's, else 120.
size_t terminal_width();

/// True if standard error is a terminal (progress is shown only then).
bool is_interactive();

/// "12.3 ms", "4.56 us": a time in microseconds with three digits and a fitting unit.
std::string format_time_us(double time_us);

}  // namespace ks::base
