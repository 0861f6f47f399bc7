// The programs that a shell command runs, as far as counting tools needs them: quotes, pipelines, lists, redirections
// and here-documents are understood; "cd X &&", assignments and wrappers (sudo, timeout 60, env …) are looked through;
// bash -c '…' is opened. Not a shell: expansions stay as they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ks::trace {

/// One program of a command.
struct ShellProgram {
  std::string name;               ///< file name of the program, without folder
  std::vector<std::string> args;  ///< without redirections
  std::string folder;             ///< where it runs, as far as a "cd" said so; "" where the command began
  std::string writes;             ///< file that its output goes into ("> file"); "" where none
  std::string here_text;          ///< its here-document
};

/// In order of appearance. `folder`: where the command begins.
std::vector<ShellProgram> parse_shell(std::string_view command, const std::string& folder = "");

/// `path` as seen from `folder`, "." and ".." taken out.
std::string resolve_path(std::string_view folder, std::string_view path);

}  // namespace ks::trace
