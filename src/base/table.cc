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

constexpr size_t kLeastFirst = 12;  ///< the first column says what a row is about
constexpr size_t kLeastColumn = 6;

/// Narrows the widest columns until a line fits. False where that would leave nothing to read.
bool narrow(std::vector<size_t>& widths, size_t width) {
  size_t total = 2 * (widths.size() - 1);
  for (size_t w : widths) total += w;
  for (; total > width; --total) {
    size_t* widest = nullptr;
    for (size_t c = 0; c < widths.size(); ++c)
      if (widths[c] > (c == 0 ? kLeastFirst : kLeastColumn) && (widest == nullptr || widths[c] > *widest))
        widest = &widths[c];
    if (widest == nullptr) return false;
    --*widest;
  }
  return true;
}

/// `label` and the words of `text` in lines of at most `width` columns, all but the first indented; a longer word has a
/// line of its own.
std::string wrapped(const std::string& label, const std::string& text, size_t width) {
  std::string result, line = label;
  bool is_fresh = true;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!is_fresh && columns(line) + 1 + columns(word) > width) {
      result += line + "\n";
      line = "    " + word;
    } else {
      line += (is_fresh ? "" : " ") + word;
    }
    is_fresh = false;
    begin = end + 1;
  }
  return result + line + "\n";
}

}  // namespace

std::string TextTable::row_by_row(size_t width) const {
  std::string result;
  for (const auto& row : rows_)
    for (size_t c = 0; c < std::min(header_.size(), row.size()); ++c) {
      if (row[c].empty()) continue;
      result += wrapped(c == 0 ? "" : "  " + header_[c] + ": ", row[c], width);
    }
  return result;
}

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
  if (width > 0 && !narrow(widths, width)) return row_by_row(width);
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
