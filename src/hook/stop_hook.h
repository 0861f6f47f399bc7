// The stop judge as a stop hook of agent programs: reads the program's question from standard input, answers in its
// dialect, from known facts alone and at once. It fails open: whatever goes wrong here lets the turn end, because only
// the driver's judge ends a run. docs/formats/run_folder.md says what lies where.
#pragma once

#include <string>

#include "base/file.h"
#include "base/json.h"

namespace ks::hook {

/// The programs whose contract is known.
enum class Dialect { kBlock, kFollowup, kDeny, kExitCode };

/// What the hook prints, and its exit code.
struct Reply {
  std::string out, err;
  int exit_code = 0;
};

/// Finds the dialect from the hook's input: "Stop" (Claude Code, Codex), "stop" with a loop count (Cursor),
/// "AfterAgent" (Gemini CLI); else exit codes.
Dialect dialect_of(const Json& input);

/// The answer to a stop. `told` holds facts.json; `counts` is a folder in which refusals in a row are counted.
Reply answer(const std::string& input, const base::fs::path& told, const base::fs::path& counts);

/// The hook of a run: its folders come from `run_folder`. Reads at most `timeout_s` from standard input.
Reply stop_hook(const base::fs::path& run_folder, double timeout_s);

}  // namespace ks::hook
