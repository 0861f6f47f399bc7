#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace ks::base {
namespace {

/// Closes a file descriptor when it goes out of scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error("{}: cannot write: {}", path.string(), std::strerror(errno));
    content.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

std::string read_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw Error("{}: cannot read: {}", path.string(), std::strerror(errno));
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("{}: cannot read: {}", path.string(), std::strerror(errno));
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  const fs::path temporary = path.string() + "." + std::to_string(::getpid()) + ".tmp";
  try {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) throw Error("{}: cannot write: {}", path.string(), std::strerror(errno));
    write_all(file.get(), content, path);
    if (::fsync(file.get()) != 0) throw Error("{}: cannot write: {}", path.string(), std::strerror(errno));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::unlink(temporary.c_str());
    throw Error("{}: cannot write: {}", path.string(), std::strerror(why));
  }
}

void append_line(const fs::path& path, std::string_view line, bool durable) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file.get() < 0) throw Error("{}: cannot write: {}", path.string(), std::strerror(errno));
  std::string text(line);
  text += '\n';
  write_all(file.get(), text, path);
  if (durable && ::fdatasync(file.get()) != 0) throw Error("{}: cannot write: {}", path.string(), std::strerror(errno));
}

std::vector<std::string> read_lines(const fs::path& path) {
  const std::string content = read_file(path);
  std::vector<std::string> lines;
  size_t start = 0;
  while (start < content.size()) {
    const size_t end = std::min(content.find('\n', start), content.size());
    lines.push_back(content.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error("{}: cannot make this folder: {}", path.string(), error.message());
}

fs::path project_root() {
  if (const char* root = std::getenv("KERNELSEEK_ROOT")) return root;
  return KS_SOURCE_DIR;
}

fs::path executable_folder() {
  return fs::read_symlink("/proc/self/exe").parent_path();
}

fs::path cache_folder() {
  if (const char* cache = std::getenv("KERNELSEEK_CACHE")) return cache;
  return project_root() / ".cache";
}

TempFolder::TempFolder(std::string_view prefix) {
  std::string pattern = (fs::temp_directory_path() / (std::string(prefix) + ".XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw Error("{}: cannot make a temporary folder: {}", pattern, std::strerror(errno));
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace ks::base
