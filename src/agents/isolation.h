// The walls around an agent's process: it sees the system read-only, may write its own working folder and a few more
// that it is given, and of the run's folder sees nothing else, so that records, goal, hidden grid, trace and evaluator
// are out of its reach. Built with bubblewrap; where that cannot be had, the agent runs without and the run says so.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/subprocess.h"

namespace ks::agents {

/// What an agent's process may touch.
struct IsolationSpec {
  base::fs::path run_folder;                                     ///< hidden …
  base::fs::path work;                                           ///< … but for this, which is writable
  std::vector<base::fs::path> writable;                          ///< further folders and sockets, at their own places
  std::vector<base::fs::path> readable;                          ///< folders of the run folder that may be read
  std::vector<std::pair<base::fs::path, base::fs::path>> bound;  ///< a file of ours, and where it is seen, writable
  bool network = false;
  bool device_files = false;  ///< a GPU
};

/// How the process will be started.
struct Isolated {
  base::SpawnOptions options;
  bool is_isolated = false;
  std::string why_not;
};

/// Wraps the program of `options`.
Isolated isolate(const base::SpawnOptions& options, const IsolationSpec& spec);

/// Whether bubblewrap works here; if not, why. Tried once per process.
const std::string& why_no_isolation();

}  // namespace ks::agents
