// See trace_reader.h.
#include "trace/trace_reader.h"

#include "trace/json_lines.h"

namespace ks::trace {

std::optional<Event> event_from(Json& json) {
  if (!json.is_object()) return std::nullopt;
  Event event;
  for (auto& [key, value] : json.items()) {
    if (key == "seq" && value.is_number_integer()) event.seq = value.get<int64_t>();
    if (key == "time" && value.is_number()) event.time = value.get<double>();
    if (key == "kind" && value.is_string()) event.kind = std::move(value.get_ref<std::string&>());
    if (key == "session" && value.is_string()) event.session = std::move(value.get_ref<std::string&>());
    if (key == "body" && value.is_object()) event.body = std::move(value);
  }
  if (event.seq <= 0 || event.kind.empty()) return std::nullopt;
  return event;
}

std::optional<Event> parse_event(std::string_view line) {
  Counters ignored;
  thread_local JsonLineParser parser;
  auto json = parser.parse_unpadded(line, ignored);
  return json ? event_from(*json) : std::nullopt;
}

TraceReader::TraceReader(const base::fs::path& path, int64_t offset)
    : path_(path), lines_(path, offset), at_start_(offset == 0) {}

void TraceReader::check_order(const Event& event) {
  if (event.seq == last_seq_) ++counters_["duplicate_seq"];
  if (event.seq < last_seq_) ++counters_["seq_went_backwards"];
  if (last_seq_ > 0 && event.seq > last_seq_ + 1) ++counters_["seq_gap"];
  if (event.time > 0 && event.time < last_time_) ++counters_["clock_went_backwards"];
  if (!is_known_kind(event.kind)) ++counters_["unknown_kind"];
  last_seq_ = event.seq;
  if (event.time > 0) last_time_ = event.time;
}

std::optional<Event> TraceReader::event_of(const Line& line) {
  if (line.is_too_long) {
    ++counters_["line_too_long"];
    return std::nullopt;
  }
  if (line.text.empty()) return std::nullopt;
  auto json = parse_json_line(line.text, counters_);
  if (!json) return std::nullopt;
  if (at_start_) {
    at_start_ = false;
    if (json->is_object() && json->contains("schema")) {
      header_ = std::move(*json);
      return std::nullopt;
    }
    ++counters_["no_header"];
  }
  auto event = event_from(*json);
  if (!event) {
    ++counters_["not_an_event"];
    return std::nullopt;
  }
  check_order(*event);
  return event;
}

std::optional<Event> TraceReader::next() {
  while (const auto line = lines_.next()) {
    if (auto event = event_of(*line)) return event;
  }
  return std::nullopt;
}

std::optional<Event> TraceReader::last() {
  const auto line = lines_.rest();
  if (!line) return std::nullopt;
  if (!line->is_too_long && parse_event(line->text)) return event_of(*line);
  ++counters_["torn_last_line"];
  return std::nullopt;
}

void TraceReader::require_header() {
  LineReader lines(path_);
  const auto line = lines.next();
  Counters ignored;
  const auto json = line ? parse_json_line(line->text, ignored) : std::nullopt;
  const std::string schema = json && json->is_object() ? base::value_or<std::string>(*json, "schema", "") : "";
  if (schema == kTraceSchema) return;
  throw Error("{}:1: this is not a trace of this version: its first line must be the header with \"schema\": \"{}\"{}",
              path_.string(), kTraceSchema, schema.empty() ? "" : ", but names \"" + schema + "\"");
}

std::vector<Event> read_trace(const base::fs::path& path, Counters* counters) {
  TraceReader reader(path);
  std::vector<Event> events;
  while (auto event = reader.next()) events.push_back(std::move(*event));
  if (auto event = reader.last()) events.push_back(std::move(*event));
  if (counters) *counters = reader.counters();
  return events;
}

}  // namespace ks::trace
