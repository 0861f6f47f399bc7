// What a tool call is for: profiling, reading, editing … decided from the tool's name and, for shells, from the
// programs that the command runs. docs/formats/stats.md states the rules for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace ks::trace {

/// Kinds of tool calls, most specific first: a call that does several things counts under the first.
inline constexpr std::string_view kToolKinds[] = {"profiler",   "disassembly", "benchmark",       "build",
                                                  "helper",     "edit",        "own_source_read", "documentation",
                                                  "other_read", "other"};

/// Files that the agents of a trace have written, by path. A relative path matches an absolute one that ends in it.
class OwnFiles {
 public:
  void add(const std::string& path);
  bool contains(const std::string& path) const;

 private:
  std::unordered_map<std::string, std::vector<std::string>> by_name_;
};

/// What a call does.
struct ToolUse {
  std::string kind;                 ///< one of kToolKinds
  std::vector<std::string> also;    ///< further kinds of the same call
  std::vector<std::string> reads;   ///< files whose text it shows, as far as the call names them
  std::vector<std::string> writes;  ///< files that it writes
};

/// Classifies the calls of one trace in order, and remembers which files are its own.
class ToolClassifier {
 public:
  /// `folder`: the working folder of the session, where known.
  ToolUse classify(const std::string& tool, const Json& input, const std::string& folder);

 private:
  void classify_shell(const std::string& command, const std::string& folder, ToolUse& use,
                      std::vector<std::string>& kinds);
  void classify_tool(const std::string& name, const Json& input, const std::string& folder, ToolUse& use,
                     std::vector<std::string>& kinds);
  OwnFiles own_;
};

/// The shell command of a call; "" where its tool is no shell.
std::string shell_command_of(const std::string& tool, const Json& input);

/// True for tools that show one file: Read, read_file, view.
bool is_read_tool(const std::string& tool);

/// The texts that a call writes into files: whole contents, replacements, added lines of patches, here-documents.
std::vector<std::string> written_texts(const std::string& tool, const Json& input);

}  // namespace ks::trace
