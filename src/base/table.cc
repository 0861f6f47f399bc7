#include "base/table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace ks::base {
namespace {

/// Columns that a UTF-8 text takes (one a code point).
size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string shorten(const std::string& text, size_t width) {
  if (columns(text) <= width) return text;
  std::string result;
  size_t used = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80 && ++used >= width) break;
    result += text[i];
  }
  return result + "…";
}

bool is_numeric(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' || cell[0] == '+' ||
                           cell[0] == '[' || cell[0] == '(');
}

}  // namespace

std::string TextTable::text(size_t width) const {
  const size_t count = header_.size();
  std::vector<size_t> widths(count);
  std::vector<size_t> numeric(count);
  for (size_t c = 0; c < count; ++c) widths[c] = columns(header_[c]);
  for (const auto& row : rows_)
    for (size_t c = 0; c < std::min(count, row.size()); ++c) {
      widths[c] = std::max(widths[c], columns(row[c]));
      numeric[c] += is_numeric(row[c]) || row[c].empty() || row[c] == "—";
    }
  size_t total = 2 * (count - 1);
  for (size_t w : widths) total += w;
  while (width > 0 && total > width) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= 6) break;
    --*widest;
    --total;
  }
  const auto line = [&](const std::vector<std::string>& row) {
    std::string result;
    for (size_t c = 0; c < count; ++c) {
      const std::string cell = shorten(c < row.size() ? row[c] : "", widths[c]);
      const std::string pad(widths[c] - std::min(widths[c], columns(cell)), ' ');
      const bool right = !rows_.empty() && numeric[c] == rows_.size();
      result += (c == 0 ? "" : "  ") + (right ? pad + cell : cell + pad);
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
  };
  std::string result = line(header_);
  for (const auto& row : rows_) result += line(row);
  return result;
}

size_t terminal_width() {
  if (const char* given = std::getenv("COLUMNS")) {
    const int value = std::atoi(given);
    if (value > 0) return static_cast<size_t>(value);
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 120;
}

bool is_interactive() {
  return ::isatty(STDERR_FILENO) != 0;
}

std::string format_time_us(double time_us) {
  if (time_us < 1000) return fmt::format("{:.2f} us", time_us);
  if (time_us < 1e6) return fmt::format("{:.2f} ms", time_us / 1e3);
  return fmt::format("{:.2f} s", time_us / 1e6);
}

}  // namespace ks::base
