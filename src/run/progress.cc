#include "run/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"

namespace ks::run {

Progress::Progress(std::FILE* lasting, std::FILE* status, bool is_live, size_t width)
    : lasting_(lasting), status_(status), is_live_(is_live), width_(width == 0 ? base::terminal_width() : width) {}

Progress::~Progress() {
  if (is_live_) std::fputs("\r\033[K", status_);
}

std::string Progress::fit(const std::string& line) const {
  std::string text;
  for (char c : line) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  const size_t most = std::max<size_t>(width_, 10) - 1;
  if (text.size() <= most) return text;
  size_t end = most - 2;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "..";
}

void Progress::say(const std::string& line) {
  const std::lock_guard guard(mutex_);
  if (is_live_) std::fputs("\r\033[K", status_), std::fflush(status_);
  std::fprintf(lasting_, "%s\n", (is_live_ ? fit(line) : line).c_str());
  std::fflush(lasting_);
}

void Progress::show(const std::string& line) {
  if (!is_live_) return;
  const std::lock_guard guard(mutex_);
  std::fprintf(status_, "\r\033[K%s", fit(line).c_str());
  std::fflush(status_);
}

std::string clock_text(double seconds) {
  if (seconds > 1e9) return "-";
  const auto whole = static_cast<long>(std::max(0.0, std::floor(seconds)));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace ks::run
