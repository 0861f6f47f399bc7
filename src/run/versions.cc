#include "run/versions.h"

#include <map>

#include "agents/tune_points.h"
#include "base/subprocess.h"

namespace ks::run {
namespace {
namespace fs = base::fs;

/// The files of a folder, with the values of tuned constants blanked, by relative path.
std::map<std::string, std::string> blanked_files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::string text = base::read_file(entry.path());
    try {
      agents::Settings blank;
      for (const auto& point : agents::find_tune_points(text, "")) blank[point.name] = "?";
      text = agents::with_settings(text, blank, "");
    } catch (const Error&) {
      // A mark that cannot be read is text like any other.
    }
    files[entry.path().lexically_relative(folder).string()] = std::move(text);
  }
  return files;
}

}  // namespace

Versions::Versions(const RunPaths& paths) : paths_(paths) {
  base::make_folder(paths_.snapshot());
  // Locks of a git that was killed, wherever they lie; nobody else uses this repository while we hold the run's lock.
  std::vector<fs::path> locks;
  base::make_folder(paths_.versions());
  for (const auto& entry : fs::recursive_directory_iterator(paths_.versions()))
    if (entry.path().extension() == ".lock") locks.push_back(entry.path());
  for (const auto& lock : locks) {
    std::error_code ignored;
    fs::remove(lock, ignored);
  }
  // Making it again changes nothing of a whole one, and completes one whose making was cut short.
  git({"init", "--quiet", "--initial-branch=main"});
}

std::string Versions::git(std::vector<std::string> arguments) const {
  base::SpawnOptions options;
  options.argv = {"git", "--git-dir=" + paths_.versions().string(), "--work-tree=" + paths_.snapshot().string(), "-c",
                  "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "core.autocrlf=false",
                  // A kill loses nothing of this; what a power cut must not lose is the trace and the records.
                  "-c", "core.fsync=none"};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.folder = paths_.snapshot().string();
  options.env = {{"GIT_CONFIG_NOSYSTEM", "1"},
                 {"GIT_CONFIG_GLOBAL", "/dev/null"},
                 {"GIT_AUTHOR_NAME", "kernelseek"},
                 {"GIT_AUTHOR_EMAIL", "run@localhost"},
                 {"GIT_COMMITTER_NAME", "kernelseek"},
                 {"GIT_COMMITTER_EMAIL", "run@localhost"},
                 {"LC_ALL", "C"}};
  options.timeout_s = 120;
  const auto result = base::run_process(options);
  if (!result.ok()) throw Error("git {} in {} failed: {}", arguments.front(), paths_.versions().string(), result.err);
  return result.out;
}

Version Versions::keep(int number, const std::string& summary) {
  Version version;
  const auto before = blanked_files(paths_.snapshot());
  fs::remove_all(paths_.snapshot());
  base::make_folder(paths_.snapshot());
  version.left_out = copy_tree(paths_.work(), paths_.snapshot());
  git({"add", "--all", "--force", "."});
  std::string line;
  const std::string numbers = git({"diff", "--cached", "--numstat", "--no-renames"});
  for (size_t at = 0; at < numbers.size();) {
    const size_t end = std::min(numbers.find('\n', at), numbers.size());
    line = numbers.substr(at, end - at);
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second != std::string::npos)
      version.changes.push_back(
          {line.substr(second + 1), std::atoi(line.c_str()), std::atoi(line.c_str() + first + 1)});
    at = end + 1;
  }
  version.params_only = !version.changes.empty() && before == blanked_files(paths_.snapshot());
  git({"commit", "--quiet", "--allow-empty", "--no-verify", "-m", fmt::format("evaluation {}: {}", number, summary)});
  git({"tag", "--force", fmt::format("evaluation-{:04}", number)});
  version.commit = git({"rev-parse", "HEAD"});
  while (!version.commit.empty() && version.commit.back() == '\n') version.commit.pop_back();
  return version;
}

}  // namespace ks::run
