// How much of what the tools gave back is own source read again, measured by content. A line counts where the trace has
// seen it before as a line of a file of its own: in a text that an agent wrote into a file, or shown from a file that
// an agent has written. It counts wherever it comes back: a whole file, a part through sed or head, an editor's echo, a
// diff, a compiler's quotation. docs/formats/stats.md states the rule for recomputing by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trace/tool_kinds.h"

namespace ks::trace {

/// Figures in characters (Unicode code points) of tool-result text.
struct RereadFigures {
  int64_t result_chars = 0;       ///< all tool-result text
  int64_t own_chars = 0;          ///< own source, read again (the figure that counts)
  int64_t main_result_chars = 0;  ///< tool-result text of main sessions; the two below are parts of it
  int64_t read_path_chars = 0;    ///< results of read tools on a path that a read tool had read before
  int64_t read_line_chars = 0;    ///< lines of read tools' results that one had shown for that path before
};

/// Follows the calls and results of one trace.
class SourceReread {
 public:
  /// A call: what it writes becomes own source.
  void call(const std::string& id, const std::string& tool, const Json& body);
  /// A result, in the order of the trace.
  void result(const std::string& id, std::string_view text, bool is_main);
  const RereadFigures& figures() const { return figures_; }

 private:
  struct OpenCall {
    bool is_read_tool = false;
    std::vector<std::string> reads;
  };
  using Lines = std::unordered_set<uint64_t>;

  void learn(std::string_view text);
  void become_own(const std::string& path);
  void count_read_tool(const std::string& path, std::string_view text);
  bool is_known(std::string_view line) const;

  RereadFigures figures_;
  OwnFiles own_files_;
  Lines own_lines_;
  std::unordered_map<std::string, Lines> shown_;  ///< lines shown from files that are not own (yet), by path
  std::unordered_map<std::string, Lines> read_tool_lines_;
  std::unordered_map<std::string, OpenCall> open_;
};

/// Number of code points of UTF-8 text.
int64_t count_chars(std::string_view text);

/// A line without line number or place ("  12→", "12:", "12\t", "a.cu:12:"), for comparing; spaces at both ends are
/// cut.
std::string_view bare_line(std::string_view line);

}  // namespace ks::trace
