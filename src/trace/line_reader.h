// Lines of a file of any size, in constant memory: blocks are read into one buffer and lines are views into it. A line
// longer than the limit is skipped, and said so, instead of filling the memory. The file may grow while it is read:
// next() returns nothing at the end of what is there, and goes on when called again.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace ks::trace {

/// One line; `text` is valid until the next call, and at least LineReader::kPadding bytes after it may be read.
struct Line {
  std::string_view text;  ///< without "\n" and "\r\n"; empty where is_too_long
  int64_t number = 0;     ///< from 1, counted from the offset where reading began
  int64_t offset = 0;     ///< of its first byte in the file
  int64_t bytes = 0;      ///< with its newline
  bool is_too_long = false;
};

/// Reads a file line by line.
class LineReader {
 public:
  static constexpr size_t kPadding = 64;  ///< simdjson reads past the end of what it parses
  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

  /// Throws ks::Error where the file cannot be opened. `offset` must be the start of a line.
  explicit LineReader(const base::fs::path& path, int64_t offset = 0, size_t max_line_bytes = kMaxLineBytes);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next line that ends in a newline; nothing at the end of what is in the file now.
  std::optional<Line> next();
  /// What stands after the last newline; to be called when next() gave nothing and no more is to come.
  std::optional<Line> rest();
  /// Start of the first line that was not returned yet: where another reader can go on.
  int64_t offset() const { return offset_; }

 private:
  bool fill();
  Line take(size_t length, size_t newline_bytes);

  int fd_ = -1;
  base::fs::path path_;
  size_t max_line_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0, scanned_ = 0;  ///< unread bytes are [begin_, end_); no newline before scanned_
  int64_t offset_ = 0, number_ = 0;
  int64_t skipped_bytes_ = 0;  ///< of the over-long line that is being skipped
};

}  // namespace ks::trace
