// JSON lines at speed: simdjson walks the text on demand and only the keys that are asked for become values. What is
// wrong with a line is repaired where that loses nothing (bytes that are not UTF-8, halves of surrogate pairs), and
// counted by name:
//   invalid_utf8, lone_surrogate   repaired, the line counts
//   joined_lines                   several objects on one line: each counts
//   damaged_line                   not JSON, but whole objects inside it were rescued
//   not_json                       nothing in it could be used
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trace/event.h"

namespace ks::trace {

/// Parses lines; keeps its buffers between calls, so make one per thread and reuse it.
class JsonLineParser {
 public:
  JsonLineParser();
  ~JsonLineParser();

  /// Keys below the top level that are passed over: what is large and of no use.
  void set_skip(std::span<const std::string_view> skip) { skip_ = skip; }
  /// The one value of a line; nothing where it is not JSON. `keep`: the keys of the top level to keep (empty: all).
  /// At least LineReader::kPadding bytes after `line` must be readable.
  std::optional<Json> parse(std::string_view line, Counters& counters, std::span<const std::string_view> keep = {});
  /// The same for a text of any storage; copies it.
  std::optional<Json> parse_unpadded(std::string_view line, Counters& counters,
                                     std::span<const std::string_view> keep = {});
  /// Gives every object of a line to `use`: usually one, more where lines ran together.
  void parse_objects(std::string_view line, Counters& counters, std::span<const std::string_view> keep,
                     const std::function<void(Json&)>& use);

 private:
  enum class Result { kGood, kTrailing, kBadUtf8, kBadString, kBad };
  Result try_parse(std::string_view padded, std::span<const std::string_view> keep, Json& into);
  Result parse_repaired(std::string_view line, Counters& counters, std::span<const std::string_view> keep, Json& into);

  std::span<const std::string_view> skip_;
  struct State;
  std::unique_ptr<State> state_;
};

/// parse() with a parser of this thread.
std::optional<Json> parse_json_line(std::string_view padded_line, Counters& counters);

/// `text` with every byte sequence that is not UTF-8 replaced by U+FFFD.
std::string repair_utf8(std::string_view text);

/// A JSON document that was cut off, ended after its last whole element: closing brackets are added. Empty where
/// nothing of it can be saved.
std::string close_truncated(std::string_view text);

}  // namespace ks::trace
