// See importer.h.
#include "trace/importer.h"

#include <array>
#include <cmath>
#include <ctime>

#include "trace/line_reader.h"

namespace ks::trace {

void Importer::line(std::string_view text) {
  ++report_.lines;
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) {
    count_problem("empty_line");
    return;
  }
  parser_.parse_objects(text, report_.problems, keep(), [this](Json& json) { take(json); });
}

void Importer::document(std::string_view) {
  KS_CHECK(false, "a format of lines has no document");
}

void Importer::take(Json& json) {
  ++report_.records;
  const std::string reason = record(json);
  if (reason.empty()) {
    ++report_.used;
  } else {
    ++report_.skipped[reason];
  }
}

void Importer::emit(std::string kind, const std::string& session, double time, Json body) {
  if (time > 0) {
    double& last = last_time_[session];
    if (time < last) count_problem("clock_went_backwards");
    last = time;
  }
  if (use_) use_(Event{++seq_, time, std::move(kind), session, std::move(body)});
}

void Importer::open_session(const std::string& session, double time, const std::string& parent,
                            const std::string& agent, const std::string& model) {
  if (!sessions_.insert(session).second) return;
  Json body = {{"session", session}};
  if (!parent.empty()) body["parent"] = parent;
  if (!agent.empty()) body["agent"] = agent;
  if (!model.empty()) body["model"] = model;
  emit("session_start", session, time, std::move(body));
}

void Importer::message(const std::string& session, double time, const char* role, std::string text,
                       const char* source) {
  if (text.empty()) return;
  Json body = Json::object();
  body["role"] = role;
  body["text"] = std::move(text);
  body["source"] = source;
  emit("message", session, time, std::move(body));
}

void Importer::user_text(const std::string& session, double time, std::string text) {
  const char* source = machine_source(text);
  const bool is_machine = *source != '\0';
  message(session, time, is_machine ? "system" : "human", std::move(text), is_machine ? source : "typed");
}

void Importer::tool_call(const std::string& session, double time, const std::string& id, const std::string& tool,
                         Json input) {
  if (!calls_.emplace(id, false).second) count_problem("duplicate_call_id");
  ToolUse use = tools_.classify(tool, input, folder_);
  Json body = Json::object();
  body["id"] = id;
  body["tool"] = tool;
  body["kind"] = std::move(use.kind);
  if (!use.also.empty()) body["also"] = std::move(use.also);
  if (!use.reads.empty()) body["reads"] = std::move(use.reads);
  if (!use.writes.empty()) body["writes"] = std::move(use.writes);
  body["input"] = std::move(input);
  emit("tool_call", session, time, std::move(body));
}

void Importer::tool_result(const std::string& session, double time, const std::string& id, std::string text,
                           bool is_error) {
  const auto call = calls_.find(id);
  if (call == calls_.end()) {
    count_problem("result_without_call");
  } else if (call->second) {
    count_problem("second_result_of_a_call");
  } else {
    call->second = true;
  }
  Json body = Json::object();
  body["id"] = id;
  body["bytes"] = text.size();
  body["text"] = std::move(text);
  body["is_error"] = is_error;
  emit("tool_result", session, time, std::move(body));
}

void Importer::note(const std::string& session, double time, const std::string& source, std::string text) {
  Json body = {{"source", source}};
  if (!text.empty()) body["text"] = std::move(text);
  emit("note", session, time, std::move(body));
}

void Importer::count_open_calls() {
  for (const auto& [id, has_result] : calls_)
    if (!has_result) count_problem("call_without_result");
}

const Json& value_at(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string text_at(const Json& object, const char* key) {
  const Json& value = value_at(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

int64_t integer_at(const Json& object, const char* key) {
  const Json& value = value_at(object, key);
  if (value.is_number_float()) {  // a double beyond 64 bits has no integer
    const double number = value.get<double>();
    return std::abs(number) < 9e18 ? static_cast<int64_t>(number) : 0;
  }
  return value.is_number() ? value.get<int64_t>() : 0;
}

double number_at(const Json& object, const char* key) {
  const Json& value = value_at(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

bool truth_at(const Json& object, const char* key) {
  const Json& value = value_at(object, key);
  return value.is_boolean() && value.get<bool>();
}

std::string joined_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const Json& block : content) {
    if (block.is_string()) text += block.get_ref<const std::string&>();
    const Json& part = value_at(block, "text");
    if (part.is_string()) text += part.get_ref<const std::string&>();
  }
  return text;
}

namespace {

/// Two or four digits at `at`; -1 where there are none.
int digits(std::string_view text, size_t at, size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = 10 * value + (text[i] - '0');
  }
  return value;
}

/// "+02:00" or "-0530" in seconds; 0 for "Z" and for none.
int zone_offset_s(std::string_view zone) {
  if (zone.size() < 5 || (zone[0] != '+' && zone[0] != '-')) return 0;
  const int hours = digits(zone, 1, 2);
  const int minutes = digits(zone, zone[3] == ':' ? 4 : 3, 2);
  if (hours < 0 || minutes < 0) return 0;
  return (zone[0] == '-' ? -1 : 1) * (3600 * hours + 60 * minutes);
}

double iso_time(std::string_view text) {
  std::tm tm{};
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const int hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (year < 1900 || month < 1 || day < 1 || hour < 0 || minute < 0 || second < 0) return 0;
  tm.tm_year = year - 1900, tm.tm_mon = month - 1, tm.tm_mday = day;
  tm.tm_hour = hour, tm.tm_min = minute, tm.tm_sec = second;
  double fraction = 0, scale = 0.1;
  size_t at = 19;
  if (at < text.size() && text[at] == '.')
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10)
      fraction += scale * (text[at] - '0');
  return static_cast<double>(::timegm(&tm)) + fraction - zone_offset_s(text.substr(std::min(at, text.size())));
}

}  // namespace

double time_of(const Json& value) {
  if (value.is_string()) return iso_time(value.get_ref<const std::string&>());
  if (!value.is_number()) return 0;
  const double number = value.get<double>();
  if (!(number > 0) || number > 1e20) return 0;
  if (number > 1e17) return number / 1e9;
  return number > 1e11 ? number / 1e3 : number;
}

const char* machine_source(std::string_view text) {
  struct Rule {
    std::string_view beginning;
    const char* source;
  };
  constexpr std::array<Rule, 22> kRules = {
      {{"[Request interrupted", "interrupt"},
       {"<turn_aborted", "interrupt"},
       {"<command-", "command"},
       {"<local-command-", "command"},
       {"<bash-", "command"},
       {"<user-memory-input", "command"},
       {"<task-notification", "notification"},
       {"<agent-notification", "notification"},
       {"<subagent_notification", "notification"},
       {"<teammate-message", "notification"},
       {"<system-reminder", "injected"},
       {"<ide_", "injected"},
       {"<environment_context", "injected"},
       {"<user_instructions", "injected"},
       {"<permissions", "injected"},
       {"<INSTRUCTIONS", "injected"},
       {"<skill", "injected"},
       {"# AGENTS.md instructions", "injected"},
       {"Caveat: The messages below were generated", "meta"},
       {"Stop hook feedback", "hook_feedback"},
       {"<hook_prompt", "hook_feedback"},
       {"This session is being continued from a previous conversation", "compact_summary"}}};
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return "";
  for (const Rule& rule : kRules)
    if (text.substr(start).starts_with(rule.beginning)) return rule.source;
  return "";
}

}  // namespace ks::trace
