// Files: whole reads, atomic writes (temporary file, fsync, rename), temporary folders, and where the project's own
// data lies. Every failure is a ks::Error that names the path and the reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ks::base {

namespace fs = std::filesystem;

/// The whole content of a file.
std::string read_file(const fs::path& path);

/// Replaces the file by `content` so that a reader sees the old or the new text, never a part.
void write_file_atomically(const fs::path& path, std::string_view content);

/// Appends one line (a newline is added) with a single write(2), then fsyncs if `durable`.
void append_line(const fs::path& path, std::string_view line, bool durable = true);

/// The lines of a file without their newlines; a last line without newline counts.
std::vector<std::string> read_lines(const fs::path& path);

/// Makes the folder and its parents.
void make_folder(const fs::path& path);

/// Root of the source tree (operators/, data/, abi/ …): $KERNELSEEK_ROOT, else where this program was built from.
fs::path project_root();

/// Folder of the running executable; the worker and oracle executables lie beside it.
fs::path executable_folder();

/// Where builds and installed baselines are kept: $KERNELSEEK_CACHE, else <project root>/.cache.
fs::path cache_folder();

/// A fresh folder, removed with all it holds when the object dies.
class TempFolder {
 public:
  explicit TempFolder(std::string_view prefix = "kernelseek");
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace ks::base
