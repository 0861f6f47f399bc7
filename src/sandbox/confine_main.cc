// kernelseek-confine PROGRAM ARGUMENTS…: starts a program confined, for worker folders whose own code cannot be trusted
// to seal itself. It may read files and start threads; it may not start processes, open sockets or write anywhere.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>

#include "sandbox/seal_process.h"

namespace {

/// The program's installation (a virtual environment and what it stands on), and the folders of files that it is given.
void add_program_paths(int count, char** words, std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::error_code failed;
  for (int i = 1; i < count; ++i) {
    const fs::path path = fs::absolute(words[i], failed);
    if (words[i][0] == '-' || !fs::exists(path, failed)) continue;
    paths.push_back(path.parent_path().string());
    if (i > 1) continue;
    paths.push_back(path.parent_path().parent_path().string());
    paths.push_back(fs::canonical(path, failed).parent_path().parent_path().string() + "/lib");
  }
}

}  // namespace

int main(int count, char** words) {
  using namespace ks::sandbox;
  if (count < 2) {
    std::fprintf(stderr, "kernelseek-confine PROGRAM ARGUMENTS…: starts PROGRAM confined\n");
    return 2;
  }
  try {
    Confinement confinement = interpreter_confinement();
    confinement.may_execute = true;
    add_program_paths(count, words, confinement.read_paths);
    const ks::Json report = confine(confinement).protections;
    if (report.at("call_filter") != true) {
      std::fprintf(stderr, "kernelseek-confine: %s\n", report.dump().c_str());
      return 3;
    }
    ::setenv(kConfinedVariable, report.dump().c_str(), 1);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernelseek-confine: %s\n", e.what());
    return 3;
  }
  ::execvp(words[1], words + 1);
  std::fprintf(stderr, "kernelseek-confine: cannot start %s: %s\n", words[1], std::strerror(errno));
  return 3;
}
