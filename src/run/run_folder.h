// A run's folder on the disk; docs/formats/run_folder.md lists what lies where and who may write it.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace ks::run {

/// Where things lie in a run folder.
struct RunPaths {
  base::fs::path root;
  base::fs::path task() const { return root / "task.toml"; }
  base::fs::path trace() const { return root / "trace.jsonl"; }
  base::fs::path work() const { return root / "work"; }          ///< the agent's; nothing else is writable for it
  base::fs::path snapshot() const { return root / "snapshot"; }  ///< what is being judged: a copy of work/
  base::fs::path versions() const { return root / "versions.git"; }
  base::fs::path evaluations() const { return root / "evaluations"; }
  base::fs::path record(int number) const;                 ///< evaluations/NNNN.json
  base::fs::path judge() const { return root / "judge"; }  ///< hidden grid, the judge's records
  base::fs::path told() const { return root / "told"; }    ///< facts that the agent may read
  base::fs::path hook() const { return root / "hook"; }    ///< counts of the stop hook
  base::fs::path logs() const { return root / "logs"; }    ///< the agent program's raw output
  base::fs::path state() const { return root / "state.json"; }
  base::fs::path lock() const { return root / "lock"; }
  base::fs::path agent_socket() const { return root / "run.sock"; }
  base::fs::path control_socket() const { return root / "control.sock"; }
};

/// Makes <runs>/<name>-<n> with the lowest free n, and its parts. Throws ks::Error where that is not permitted.
RunPaths make_run_folder(const base::fs::path& runs, const std::string& name);

/// The parts of an existing run; throws ks::Error where the folder is none.
RunPaths open_run_folder(const base::fs::path& folder);

/// Holds the folder's lock while it lives.
class RunLock {
 public:
  /// Throws ks::Error naming the process that holds it.
  explicit RunLock(const RunPaths& paths);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

/// Copies `from` (a file or folder) to `to`: no links are followed or copied, ".git" is left out, and so is every file
/// above `max_file_bytes`. Returns what was left out, relative to `from`.
std::vector<std::string> copy_tree(const base::fs::path& from, const base::fs::path& to,
                                   uint64_t max_file_bytes = 16u << 20);

}  // namespace ks::run
