#include "sandbox/seal_process.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "sandbox/protections.h"

namespace ks::sandbox {
namespace {

namespace fs = std::filesystem;

/// The part of a path that ends in the packages' folder, or else its own folder.
std::string packages_folder(const std::string& path) {
  for (const std::string mark : {"/site-packages/", "/dist-packages/"})
    if (const size_t at = path.find(mark); at != std::string::npos) return path.substr(0, at + mark.size() - 1);
  return fs::path(path).parent_path().string();
}

/// Threads of this process: what Landlock and capabilities do binds only the thread that asked.
size_t count_threads() {
  std::error_code failed;
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/task", failed)) count += entry.exists();
  return count;
}

void add_paths_of_environment(std::set<std::string>& paths) {
  const char* given = std::getenv(kReadPathsVariable);
  std::istringstream stream(given != nullptr ? given : "");
  for (std::string path; std::getline(stream, path, ':');)
    if (!path.empty()) paths.insert(path);
}

}  // namespace

Confinement interpreter_confinement() {
  Confinement confinement;
  confinement.interpreter = true;
  std::set<std::string> paths;
  std::error_code failed;
  if (const auto program = fs::read_symlink("/proc/self/exe", failed); !failed)
    paths.insert(program.parent_path().parent_path().string() + "/lib");
  if (const auto folder = fs::current_path(failed); !failed) paths.insert(folder.string());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos || line.find(".so") == std::string::npos) continue;
    paths.insert(packages_folder(line.substr(slash)));
    confinement.device_files |= line.find("/libcuda.so") != std::string::npos;
  }
  add_paths_of_environment(paths);
  confinement.read_paths.assign(paths.begin(), paths.end());
  return confinement;
}

}  // namespace ks::sandbox

int ks_seal_process(char* answer, size_t bytes) {
  using namespace ks::sandbox;
  Confinement confinement = interpreter_confinement();
  ks::Json report = ks::Json::object();
  if (const char* done = std::getenv(kConfinedVariable); done != nullptr) {
    report = ks::base::parse_json(done, kConfinedVariable);
    report["unreadable_by_others"] = set_undumpable();  // executing a program has undone it
  } else {
    const size_t threads = count_threads();
    report = confine(confinement).protections;
    if (threads > 1)
      for (const char* name : {"file_rules", "no_capabilities", "no_network"})
        if (report[name] == true)
          report[name] = "binds one thread: others were there before; the call filter binds them all";
  }
  report.update(seal(confinement));
  const std::string text = report.dump();
  if (text.size() >= bytes) return 1;
  std::memcpy(answer, text.c_str(), text.size() + 1);
  return 0;
}
