// Cursor: the recorded lines of `cursor-agent -p --output-format stream-json`. A call is an object with one key that
// names the tool; it comes twice, started and completed. Only the completed one holds the result.
#include <set>

#include "trace/importer.h"

namespace ks::trace {

namespace {

class CursorImporter final : public Importer {
 public:
  CursorImporter() : Importer("cursor") {}

 protected:
  std::string record(Json& json) override;

 private:
  std::string tool(Json& json, double time);
  void usage(const Json& json, double time);

  std::string thinking_;
  std::set<std::string> open_calls_;
};

std::string CursorImporter::record(Json& json) {
  const std::string type = text_at(json, "type"), subtype = text_at(json, "subtype");
  const double time = time_of(value_at(json, "timestamp_ms"));
  if (type == "system" && subtype == "init") folder_ = text_at(json, "cwd");
  open_session("main", time, "", "cursor", text_at(json, "model"));
  const Json& content = value_at(value_at(json, "message"), "content");
  if (type == "system") {
    if (subtype != "init") note("main", time, subtype);
    return "";
  }
  if (type == "user") {
    user_text("main", time, joined_text(content));
    return "";
  }
  if (type == "assistant") {
    message("main", time, "agent", joined_text(content), "text");
    return "";
  }
  if (type == "thinking") {
    thinking_ += text_at(json, "text");
    if (subtype == "completed") message("main", time, "agent", std::move(thinking_), "thinking");
    if (subtype == "completed")
      thinking_.clear();
    else
      note("main", time, "thinking");
    return "";
  }
  if (type == "tool_call") return tool(json, time);
  if (type == "result") {
    usage(value_at(json, "usage"), time);
    emit("session_end", "main", time, {{"reason", subtype}, {"is_error", truth_at(json, "is_error")}});
    return "";
  }
  if (type == "interaction_query") {
    note("main", time, type);
    return "";
  }
  count_problem("unknown_record_type");
  return "unknown:" + type.substr(0, 40);
}

std::string CursorImporter::tool(Json& json, double time) {
  Json& call = json["tool_call"];
  const std::string id = text_at(json, "call_id"), subtype = text_at(json, "subtype");
  std::string name;
  Json use = Json::object();
  if (call.is_object())
    for (auto& [key, value] : call.items())
      if (value.is_object()) name = key, use = std::move(value);
  if (name.empty()) return "tool_call_without_tool";
  if (open_calls_.insert(id).second) tool_call("main", time, id, name, value_at(use, "args"));
  if (subtype != "completed") return "";
  open_calls_.erase(id);
  const Json& result = value_at(use, "result");
  std::string text;
  bool is_error = true;
  if (const Json& success = value_at(result, "success"); success.is_object()) {
    is_error = integer_at(success, "exitCode") != 0;
    for (const char* key : {"interleavedOutput", "stdout", "content", "output", "contents", "diffString"})
      if (text.empty()) text = joined_text(value_at(success, key));
    if (text_at(success, "interleavedOutput").empty()) text += text_at(success, "stderr");
  } else {
    text = value_at(result, "error").is_null() ? result.dump(-1, ' ', false, Json::error_handler_t::replace)
                                               : text_at(value_at(result, "error"), "message");
  }
  tool_result("main", time, id, std::move(text), is_error);
  return "";
}

void CursorImporter::usage(const Json& json, double time) {
  if (!json.is_object()) return;
  emit("usage", "main", time,
       {{"id", "result-" + std::to_string(report_.records)},
        {"input_tokens", integer_at(json, "inputTokens")},
        {"output_tokens", integer_at(json, "outputTokens")},
        {"cached_tokens", integer_at(json, "cacheReadTokens")},
        {"cache_write_tokens", integer_at(json, "cacheWriteTokens")}});
}

}  // namespace

std::unique_ptr<Importer> make_cursor_importer() {
  return std::make_unique<CursorImporter>();
}

}  // namespace ks::trace
