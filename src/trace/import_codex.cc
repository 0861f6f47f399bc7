// Codex: rollout files with and without envelope, and the event lines of `codex exec --json`. Of the doubled records
// (response_item and event_msg) the response items count; texts of a person that stand in both count once. Token totals
// are cumulative and repeated, so usage is the difference of totals, the first one's being the last request alone.
#include <set>

#include "trace/importer.h"

namespace ks::trace {

namespace {

class CodexImporter final : public Importer {
 public:
  CodexImporter() : Importer("codex") {}

 protected:
  std::string record(Json& json) override;

 private:
  struct Totals {
    int64_t input = 0, cached = 0, output = 0, reasoning = 0;
    bool operator==(const Totals&) const = default;
  };

  static Totals totals_of(const Json& usage) {
    return {integer_at(usage, "input_tokens"), integer_at(usage, "cached_input_tokens"),
            integer_at(usage, "output_tokens"), integer_at(usage, "reasoning_output_tokens")};
  }
  std::string response_item(Json& item, double time);
  std::string event_message(const Json& payload, double time);
  std::string token_count(const Json& info, double time);
  void add_usage(const Totals& usage, double time);
  std::string stream_event(const std::string& type, Json& json, double time);
  std::string stream_item(const std::string& type, Json& item, double time);
  std::string person_or_program(std::string text, double time, bool from_event);
  void function_call(const Json& item, const std::string& type, double time);
  std::string tool_output(const Json& item, double time);
  void open(double time) { open_session("main", time, "", "codex", model_); }

  std::string model_;
  std::multiset<std::string> from_items_, from_events_;  ///< a person's texts that the other kind has still to repeat
  bool has_totals_ = false;
  Totals totals_;
  std::set<std::string> open_items_;
};

std::string CodexImporter::record(Json& json) {
  const std::string type = text_at(json, "type");
  const double time = time_of(value_at(json, "timestamp"));
  Json& payload = json["payload"];
  if (type.find('.') != std::string::npos || (type == "error" && payload.is_null()))
    return stream_event(type, json, time);
  if (type == "session_meta") {
    folder_ = text_at(payload, "cwd");
    open(time);
    message("main", time, "system", text_at(value_at(payload, "base_instructions"), "text"), "system_prompt");
    return "";
  }
  if (type == "turn_context") {
    model_ = text_at(payload, "model");
    if (const std::string folder = text_at(payload, "cwd"); !folder.empty()) folder_ = folder;
    open(time);
    note("main", time, "turn_context", model_);
    return "";
  }
  open(time);
  if (type == "response_item") return response_item(payload, time);
  if (type == "event_msg") return event_message(payload, time);
  if (type == "compacted") {
    emit("compaction", "main", time, Json::object());
    return "";
  }
  if (payload.is_null() && (json.contains("role") || json.contains("call_id") || type == "reasoning"))
    return response_item(json, time);
  if (type.empty() && (json.contains("instructions") || json.contains("record_type"))) return "header_or_state";
  count_problem("unknown_record_type");
  return "unknown:" + type.substr(0, 40);
}

std::string CodexImporter::person_or_program(std::string text, double time, bool from_event) {
  const char* source = machine_source(text);
  if (*source) {
    if (from_event) return "event_repeats_item";
    message("main", time, "system", std::move(text), source);
    return "";
  }
  auto& same = from_event ? from_items_ : from_events_;
  if (const auto found = same.find(text); found != same.end()) {
    same.erase(found);
    return from_event ? "event_repeats_item" : "item_repeats_event";
  }
  (from_event ? from_events_ : from_items_).insert(text);
  message("main", time, "human", std::move(text), "typed");
  return "";
}

std::string CodexImporter::tool_output(const Json& item, double time) {
  const Json& output = value_at(item, "output");
  std::string text = output.is_object() ? text_at(output, "content") : joined_text(output);
  bool is_error = output.is_object() && value_at(output, "success").is_boolean() && !truth_at(output, "success");
  if (text.starts_with("{")) {  // JSON in a string, with the text and the exit code inside
    Counters ignored;
    if (const auto inner = parser_.parse_unpadded(text, ignored); inner && value_at(*inner, "output").is_string()) {
      is_error = integer_at(value_at(*inner, "metadata"), "exit_code") != 0;
      text = text_at(*inner, "output");
    }
  }
  tool_result("main", time, text_at(item, "call_id"), std::move(text), is_error);
  return "";
}

void CodexImporter::function_call(const Json& item, const std::string& type, double time) {
  Json input = value_at(item, type == "function_call" ? "arguments" : "input");
  if (input.is_string() && type == "function_call") {
    Counters ignored;
    auto parsed = parser_.parse_unpadded(input.get_ref<const std::string&>(), ignored);
    if (parsed)
      input = std::move(*parsed);
    else
      count_problem("arguments_not_json");
  } else if (input.is_string()) {
    input = Json{{"input", std::move(input)}};
  }
  tool_call("main", time, text_at(item, "call_id"), text_at(item, "name"), std::move(input));
}

std::string CodexImporter::response_item(Json& item, double time) {
  const std::string type = text_at(item, "type");
  if (type == "message") {
    const std::string role = text_at(item, "role");
    std::string text = joined_text(value_at(item, "content"));
    if (role == "user") return person_or_program(std::move(text), time, false);
    const bool is_agent = role == "assistant";
    message("main", time, is_agent ? "agent" : "system", std::move(text), is_agent ? "text" : "system_prompt");
    return "";
  }
  if (type == "reasoning") {
    message("main", time, "agent", joined_text(value_at(item, "summary")), "thinking");
    return "";
  }
  if (type == "function_call" || type == "custom_tool_call") {
    function_call(item, type, time);
    return "";
  }
  if (type == "local_shell_call") {
    tool_call("main", time, text_at(item, "call_id"), "local_shell", value_at(item, "action"));
    return "";
  }
  if (type == "web_search_call") {
    const std::string id =
        text_at(item, "id").empty() ? "web_search-" + std::to_string(report_.records) : text_at(item, "id");
    tool_call("main", time, id, "web_search", value_at(item, "action"));
    return "";
  }
  if (type == "function_call_output" || type == "custom_tool_call_output") return tool_output(item, time);
  return "response_item:" + type.substr(0, 40);
}

std::string CodexImporter::event_message(const Json& payload, double time) {
  const std::string type = text_at(payload, "type");
  if (type == "user_message") return person_or_program(text_at(payload, "message"), time, true);
  if (type == "token_count") return token_count(value_at(payload, "info"), time);
  if (type == "agent_message" || type == "agent_reasoning" || type == "exec_command_end" ||
      type == "mcp_tool_call_end" || type == "patch_apply_end" || type == "agent_reasoning_raw_content")
    return "event_repeats_item";
  note("main", time, type.empty() ? "event_msg" : type);
  return "";
}

std::string CodexImporter::token_count(const Json& info, double time) {
  if (!info.is_object()) return "token_count_without_info";
  const Totals totals = totals_of(value_at(info, "total_token_usage"));
  if (has_totals_ && totals == totals_) return "token_count_repeated";
  const bool continues = has_totals_ && totals.input >= totals_.input && totals.output >= totals_.output;
  const Totals last = totals_of(value_at(info, "last_token_usage"));
  add_usage(continues ? Totals{totals.input - totals_.input, totals.cached - totals_.cached,
                               totals.output - totals_.output, totals.reasoning - totals_.reasoning}
                      : last,
            time);
  totals_ = totals;
  has_totals_ = true;
  return "";
}

void CodexImporter::add_usage(const Totals& usage, double time) {
  emit("usage", "main", time,
       {{"id", "request-" + std::to_string(report_.records)},
        {"input_tokens", usage.input - usage.cached},
        {"output_tokens", usage.output},
        {"cached_tokens", usage.cached},
        {"cache_write_tokens", 0},
        {"reasoning_tokens", usage.reasoning}});
}

std::string CodexImporter::stream_event(const std::string& type, Json& json, double time) {
  open(time);
  if (type == "turn.completed") {  // totals of the thread so far
    const Totals totals = totals_of(value_at(json, "usage"));
    const Totals before = has_totals_ && totals.input >= totals_.input ? totals_ : Totals{};
    add_usage({totals.input - before.input, totals.cached - before.cached, totals.output - before.output,
               totals.reasoning - before.reasoning},
              time);
    totals_ = totals;
    has_totals_ = true;
    return "";
  }
  if (type.starts_with("item.")) return stream_item(type, json["item"], time);
  note("main", time, type, type == "error" ? text_at(json, "message") : text_at(value_at(json, "error"), "message"));
  return "";
}

std::string CodexImporter::stream_item(const std::string& type, Json& item, double time) {
  const std::string kind = text_at(item, "type"), id = text_at(item, "id");
  const bool is_end = type == "item.completed";
  if (kind == "agent_message" || kind == "reasoning") {
    if (!is_end) return "item_update";
    message("main", time, "agent", text_at(item, "text"), kind == "reasoning" ? "thinking" : "text");
    return "";
  }
  if (kind != "command_execution" && kind != "file_change" && kind != "mcp_tool_call" && kind != "collab_tool_call" &&
      kind != "web_search")
    return "item:" + kind.substr(0, 40);
  if (type == "item.updated") return "item_update";
  if (open_items_.insert(id).second) {
    if (kind == "command_execution")
      tool_call("main", time, id, "exec_command", {{"cmd", text_at(item, "command")}});
    else if (kind == "file_change")
      tool_call("main", time, id, "apply_patch", {{"changes", value_at(item, "changes")}});
    else if (kind == "mcp_tool_call")
      tool_call("main", time, id, "mcp__" + text_at(item, "server") + "__" + text_at(item, "tool"),
                value_at(item, "arguments"));
    else
      tool_call("main", time, id, kind, item);
  }
  if (!is_end) return "";
  open_items_.erase(id);
  const bool is_error = text_at(item, "status") == "failed" || integer_at(item, "exit_code") != 0;
  std::string text = text_at(item, "aggregated_output");
  if (text.empty()) text = joined_text(value_at(value_at(item, "result"), "content"));
  tool_result("main", time, id, std::move(text), is_error);
  return "";
}

}  // namespace

std::unique_ptr<Importer> make_codex_importer() {
  return std::make_unique<CodexImporter>();
}

}  // namespace ks::trace
