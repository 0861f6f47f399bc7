// See trace_writer.h.
#include "trace/trace_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "trace/trace_reader.h"

namespace ks::trace {

namespace fs = base::fs;

namespace {

int64_t file_bytes(int fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw Error("{}: {}", path.string(), std::strerror(errno));
  return status.st_size;
}

std::string read_range(int fd, int64_t from, int64_t to, const fs::path& path) {
  std::string text(static_cast<size_t>(to - from), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::pread(fd, text.data() + done, text.size() - done, from + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

/// The offset just after the last newline before `end`; 0 where there is none.
int64_t after_last_newline(int fd, int64_t end, const fs::path& path) {
  constexpr int64_t kStep = 1 << 16;
  while (end > 0) {
    const int64_t from = std::max<int64_t>(0, end - kStep);
    const std::string block = read_range(fd, from, end, path);
    const size_t at = block.rfind('\n');
    if (at != std::string::npos) return from + static_cast<int64_t>(at) + 1;
    end = from;
  }
  return 0;
}

fs::path free_side_file(const fs::path& path) {
  for (int number = 1;; ++number) {
    fs::path candidate = path.string() + ".torn-" + std::to_string(number);
    if (!fs::exists(candidate)) return candidate;
  }
}

void sync_folder_of(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

TraceWriter::TraceWriter(const fs::path& path, const Json& about) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw Error("{}: the trace cannot be opened for writing: {}", path.string(), std::strerror(errno));
  try {
    lock_file();
    size_ = file_bytes(fd_, path_);
    if (size_ > 0) resume();
    if (size_ == 0) start(about);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

TraceWriter::~TraceWriter() {
  ::close(fd_);
}

void TraceWriter::lock_file() {
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK)
    throw Error("{}: another process is writing this trace; wait for it to end, or end it", path_.string());
  throw Error("{}: the trace cannot be locked: {}", path_.string(), std::strerror(errno));
}

void TraceWriter::start(const Json& about) {
  Json header = Json::object();
  header["schema"] = kTraceSchema;
  header["created"] = base::iso8601(base::unix_seconds());
  for (const auto& [key, value] : about.items()) header[key] = value;
  write_line(base::to_line(header), true);
  sync_folder_of(path_);
}

/// Makes the file end at a complete line, checks the header and finds the last event's number.
void TraceWriter::resume() {
  const int64_t complete = after_last_newline(fd_, size_, path_);
  if (complete < size_) {
    const std::string tail = read_range(fd_, complete, size_, path_);
    if (complete > 0 && parse_event(tail)) {  // whole but for its newline: it counts
      write_line("", true);
    } else {
      move_torn_tail(complete, size_);
    }
  }
  if (size_ == 0) return;
  TraceReader(path_).require_header();
  for (int64_t end = size_; end > 0 && last_seq_ == 0;) {
    const int64_t begin = after_last_newline(fd_, end - 1, path_);
    const auto event = parse_event(read_range(fd_, begin, end - 1, path_));
    if (event) last_seq_ = event->seq;
    end = begin;
  }
}

void TraceWriter::move_torn_tail(int64_t from, int64_t to) {
  torn_file_ = free_side_file(path_);
  base::write_file_atomically(torn_file_, read_range(fd_, from, to, path_));
  if (::ftruncate(fd_, from) != 0)
    throw Error("{}: cannot be cut at byte {}: {}", path_.string(), from, std::strerror(errno));
  ::fsync(fd_);
  size_ = from;
}

void TraceWriter::write_line(std::string line, bool durable) {
  line += '\n';
  const ssize_t written = ::write(fd_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) {
    const int reason = written < 0 ? errno : ENOSPC;
    if (written > 0 && ::ftruncate(fd_, size_) != 0) {  // the torn line is moved away when the trace is next opened
      throw Error("{}: disk full in the middle of an event", path_.string());
    }
    throw Error("{}: an event cannot be written: {}; free some space and resume the run", path_.string(),
                std::strerror(reason));
  }
  size_ += written;
  if (durable && ::fdatasync(fd_) != 0) throw Error("{}: cannot be synced: {}", path_.string(), std::strerror(errno));
}

int64_t TraceWriter::append(const std::string& kind, const std::string& session, const Json& body, bool durable) {
  const std::lock_guard lock(mutex_);  // the time is taken under the lock, so that times rise with numbers
  return append_locked(Event{0, base::unix_seconds(), kind, session, body}, durable);
}

int64_t TraceWriter::append(Event event, bool durable) {
  const std::lock_guard lock(mutex_);
  return append_locked(std::move(event), durable);
}

int64_t TraceWriter::append_locked(Event event, bool durable) {
  event.seq = last_seq_ + 1;
  write_line(base::to_line(to_json(event)), durable);
  return ++last_seq_;
}

void TraceWriter::sync() {
  if (::fdatasync(fd_) != 0) throw Error("{}: cannot be synced: {}", path_.string(), std::strerror(errno));
}

}  // namespace ks::trace
