#include "run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace ks::run {
namespace fs = base::fs;

fs::path RunPaths::record(int number) const {
  return evaluations() / fmt::format("{:04}.json", number);
}

namespace {
void make_parts(const RunPaths& paths) {
  for (const auto& part : {paths.work(), paths.evaluations(), paths.judge(), paths.told(), paths.hook(), paths.logs()})
    base::make_folder(part);
}
}  // namespace

RunPaths make_run_folder(const fs::path& runs, const std::string& name) {
  base::make_folder(runs);
  constexpr int kMost = 100000;
  for (int n = 1; n < kMost; ++n) {
    std::error_code error;
    RunPaths paths{fs::absolute(runs) / fmt::format("{}-{}", name, n)};
    if (!fs::create_directory(paths.root, error)) {
      if (error) throw Error("{}: cannot be made: {}", paths.root.string(), error.message());
      continue;
    }
    make_parts(paths);
    return paths;
  }
  throw Error("{}: no free number for a run named {}", runs.string(), name);
}

RunPaths open_run_folder(const fs::path& folder) {
  RunPaths paths{fs::absolute(folder).lexically_normal()};
  if (paths.root.filename().empty()) paths.root = paths.root.parent_path();
  if (!fs::exists(paths.root)) throw Error("{}: there is no such run folder", folder.string());
  if (!fs::exists(paths.task()))
    throw Error("{}: not a run folder (it has no task.toml); name a folder such as runs/demo-1", folder.string());
  make_parts(paths);  // a kill may have come between them
  return paths;
}

RunLock::RunLock(const RunPaths& paths) {
  fd_ = ::open(paths.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) throw Error("{}: {}", paths.lock().string(), std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    const ssize_t got = ::pread(fd_, holder, sizeof holder - 1, 0);
    ::close(fd_);
    throw Error("{}: this run is in use by process {}; wait for it, or stop it with Ctrl-C there", paths.root.string(),
                got > 0 ? std::to_string(std::atoi(holder)) : "unknown");
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, pid.data(), pid.size(), 0) < 0)
    throw Error("{}: {}", paths.lock().string(), std::strerror(errno));
}

RunLock::~RunLock() {
  ::close(fd_);
}

std::vector<std::string> copy_tree(const fs::path& from, const fs::path& to, uint64_t max_file_bytes) {
  std::vector<std::string> left_out;
  if (fs::is_symlink(fs::symlink_status(from))) return {from.filename().string()};
  if (!fs::is_directory(from)) {
    base::make_folder(to.parent_path());
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
    return left_out;
  }
  base::make_folder(to);
  for (auto at = fs::recursive_directory_iterator(from); at != fs::recursive_directory_iterator(); ++at) {
    const fs::path relative = at->path().lexically_relative(from);
    const auto status = at->symlink_status();
    if (fs::is_directory(status) && at->path().filename() != ".git") {
      base::make_folder(to / relative);
      continue;
    }
    if (fs::is_directory(status)) at.disable_recursion_pending();
    if (!fs::is_regular_file(status) || at->file_size() > max_file_bytes || at->path().filename() == ".git") {
      if (at->path().filename() != ".git") left_out.push_back(relative.string());
      continue;
    }
    fs::copy_file(at->path(), to / relative, fs::copy_options::overwrite_existing);
  }
  return left_out;
}

}  // namespace ks::run
