// Reads a trace file line by line in constant memory. A line that cannot be read is counted by name and passed over;
// events of kinds that this version does not know are returned as they are. A trace that is being written can be
// followed: next() returns nothing at the end of what is there and goes on when called again; offset() lets another
// reader go on later.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "trace/event.h"
#include "trace/line_reader.h"

namespace ks::trace {

/// The event of one line of a trace file; nothing where it is not one.
std::optional<Event> parse_event(std::string_view line);

/// An event from a parsed line, which is emptied; nothing where keys are missing or of another type.
std::optional<Event> event_from(Json& json);

/// Streams the events of one trace file.
class TraceReader {
 public:
  /// `offset`: 0, or what another reader's offset() was.
  explicit TraceReader(const base::fs::path& path, int64_t offset = 0);

  /// The next event; nothing at the end of the complete lines. A torn last line is not touched.
  std::optional<Event> next();
  /// Takes the line that has no newline, if it is an event, and counts it as "torn_last_line" if not. For files that
  /// nobody writes any more.
  std::optional<Event> last();

  /// The header; an empty object where the first line was none (counted as "no_header") or reading began later.
  const Json& header() const { return header_; }
  /// Throws ks::Error where the file does not begin with the header of a trace of this schema.
  void require_header();
  int64_t offset() const { return lines_.offset(); }
  const Counters& counters() const { return counters_; }

 private:
  std::optional<Event> event_of(const Line& line);
  void check_order(const Event& event);

  base::fs::path path_;
  LineReader lines_;
  bool at_start_;
  Json header_ = Json::object();
  Counters counters_;
  int64_t last_seq_ = 0;
  double last_time_ = 0;
};

/// All events of a file, the torn last line (if any) counted.
std::vector<Event> read_trace(const base::fs::path& path, Counters* counters = nullptr);

}  // namespace ks::trace
