// Every version that was judged, kept in git: a commit and a tag "evaluation-NNNN" each. The repository lies outside
// the agent's folder and its work tree is the snapshot, so what was judged is what is kept, and nothing that an agent
// writes (hooks, configuration, attributes of its own) runs here.
#pragma once

#include <string>
#include <vector>

#include "run/run_folder.h"

namespace ks::run {

/// One file of a change.
struct FileChange {
  std::string file;
  int lines_added = 0, lines_removed = 0;
};

/// A version and its difference from the one before.
struct Version {
  std::string commit;
  std::vector<FileChange> changes;
  bool params_only = false;           ///< nothing but values of "@tune" constants differs
  std::vector<std::string> left_out;  ///< links and large files of the agent's folder
};

class Versions {
 public:
  /// Makes the repository, or opens it after a crash.
  explicit Versions(const RunPaths& paths);
  /// Copies work/ to snapshot/ and commits it as evaluation `number`.
  Version keep(int number, const std::string& summary);

 private:
  std::string git(std::vector<std::string> arguments) const;
  RunPaths paths_;
};

}  // namespace ks::run
