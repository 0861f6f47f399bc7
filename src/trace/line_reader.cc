// See line_reader.h. The buffer grows to the longest line seen, at most to the limit.
#include "trace/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace ks::trace {

namespace {
constexpr size_t kBlockBytes = size_t{1} << 20;
}

LineReader::LineReader(const base::fs::path& path, int64_t offset, size_t max_line_bytes)
    : path_(path), max_line_bytes_(max_line_bytes), offset_(offset) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw Error("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  if (offset > 0 && ::lseek(fd_, offset, SEEK_SET) < 0) {
    const int reason = errno;
    ::close(fd_);
    throw Error("{}: cannot be read from byte {}: {}", path.string(), offset, std::strerror(reason));
  }
  buffer_.resize(kBlockBytes + kPadding);
}

LineReader::~LineReader() {
  if (fd_ >= 0) ::close(fd_);
}

/// Reads one more block; false at the end of what is in the file.
bool LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    scanned_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - kPadding - end_ < kBlockBytes / 2) buffer_.resize(2 * buffer_.size());
  while (true) {
    const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - kPadding - end_);
    if (got > 0) {
      end_ += static_cast<size_t>(got);
      return true;
    }
    if (got == 0) return false;
    if (errno != EINTR) throw Error("{}: cannot be read: {}", path_.string(), std::strerror(errno));
  }
}

Line LineReader::take(size_t length, size_t newline_bytes) {
  Line line;
  line.number = ++number_;
  line.offset = offset_;
  line.bytes = skipped_bytes_ + static_cast<int64_t>(length + newline_bytes);
  line.is_too_long = skipped_bytes_ > 0 || length > max_line_bytes_;
  if (!line.is_too_long) {
    const bool has_return = length > 0 && newline_bytes > 0 && buffer_[begin_ + length - 1] == '\r';
    line.text = std::string_view(buffer_.data() + begin_, has_return ? length - 1 : length);
  }
  offset_ += line.bytes;
  skipped_bytes_ = 0;
  begin_ += length + newline_bytes;
  scanned_ = begin_;
  return line;
}

std::optional<Line> LineReader::next() {
  while (true) {
    const void* newline = end_ > scanned_ ? std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_) : nullptr;
    if (newline) {
      const size_t position = static_cast<size_t>(static_cast<const char*>(newline) - buffer_.data());
      return take(position - begin_, 1);
    }
    scanned_ = end_;
    if (skipped_bytes_ > 0 || end_ - begin_ > max_line_bytes_) {  // skip it, keep nothing of it
      skipped_bytes_ += static_cast<int64_t>(end_ - begin_);
      begin_ = end_ = scanned_ = 0;
    }
    if (!fill()) return std::nullopt;
  }
}

std::optional<Line> LineReader::rest() {
  if (end_ == begin_ && skipped_bytes_ == 0) return std::nullopt;
  return take(end_ - begin_, 0);
}

}  // namespace ks::trace
