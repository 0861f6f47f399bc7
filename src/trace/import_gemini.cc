// Gemini CLI: the saved chat (one JSON object), its successor in lines (records that replace or update earlier ones,
// replayed into a list first), and the lines of `-o stream-json`. Prompt tokens include the cached ones, thoughts are
// not part of the output tokens; in our model cached tokens stand apart and reasoning is part of the output.
#include <algorithm>

#include "trace/document_importer.h"

namespace ks::trace {

namespace {

/// "functionResponse.response.output", or what stands in its place.
std::string result_text(const Json& result) {
  std::string text;
  if (!result.is_array()) return joined_text(result);
  for (const Json& part : result) {
    const Json& response = value_at(value_at(part, "functionResponse"), "response");
    text += response.is_object() ? joined_text(value_at(response, "output")) + text_at(response, "error")
                                 : text_at(part, "text");
  }
  return text;
}

Json usage_of(const Json& tokens, const std::string& id) {
  const int64_t cached = integer_at(tokens, "cached"), thoughts = integer_at(tokens, "thoughts");
  return {{"id", id},
          {"input_tokens", integer_at(tokens, "input") - cached},
          {"output_tokens", integer_at(tokens, "output") + thoughts},
          {"cached_tokens", cached},
          {"cache_write_tokens", 0},
          {"reasoning_tokens", thoughts}};
}

/// Events of one message of a chat; shared by both forms on disk.
template <typename Base>
class GeminiMessages : public Base {
 public:
  using Base::Base;

 protected:
  std::string message_record(Json& json) {
    const std::string type = text_at(json, "type");
    const double time = time_of(value_at(json, "timestamp"));
    this->open_session("main", time, "", "gemini-cli", text_at(json, "model"));
    std::string text = joined_text(value_at(json, "content"));
    if (type == "user") {
      this->user_text("main", time, std::move(text));
      return "";
    }
    if (type == "info" || type == "warning" || type == "error") {
      this->note("main", time, type, std::move(text));
      return "";
    }
    if (type != "gemini") {
      this->count_problem("unknown_record_type");
      return "unknown:" + type.substr(0, 40);
    }
    if (const Json& thoughts = value_at(json, "thoughts"); thoughts.is_array())
      for (const Json& thought : thoughts)
        this->message("main", time, "agent", text_at(thought, "subject") + "\n" + text_at(thought, "description"),
                      "thinking");
    this->message("main", time, "agent", std::move(text), "text");
    if (value_at(json, "tokens").is_object())
      this->emit("usage", "main", time, usage_of(json["tokens"], text_at(json, "id")));
    if (const Json& calls = value_at(json, "toolCalls"); calls.is_array()) {
      for (const Json& call : calls) {
        const double end = time_of(value_at(call, "timestamp"));
        this->tool_call("main", time, text_at(call, "id"), text_at(call, "name"), value_at(call, "args"));
        this->tool_result("main", end > time ? end : time, text_at(call, "id"), result_text(value_at(call, "result")),
                          text_at(call, "status") != "success");
      }
    }
    return "";
  }
};

class GeminiImporter final : public GeminiMessages<DocumentImporter> {
 public:
  GeminiImporter() : GeminiMessages("gemini-cli") {}

 protected:
  Json* elements(Json& root) override { return member(root, "messages"); }
  std::string record(Json& json) override { return message_record(json); }
};

class GeminiLinesImporter final : public GeminiMessages<Importer> {
 public:
  GeminiLinesImporter() : GeminiMessages("gemini-cli") {}
  void finish() override {
    for (Json& json : messages_) {
      if (const std::string reason = message_record(json); !reason.empty()) ++report_.skipped[reason], --report_.used;
    }
    Importer::finish();
  }

 protected:
  std::string record(Json& json) override {
    const std::string type = text_at(json, "type");
    if (type == "init" || type == "message" || type == "tool_use" || type == "tool_result" || type == "result" ||
        (type == "error" && json.contains("severity")))
      return stream(type, json);
    if (json.contains("$set")) return "set";
    if (const Json& target = value_at(json, "$rewindTo"); !target.is_null()) return rewind(target);
    if (json.contains("sessionId") && type.empty()) return "header";
    return replay(type, json);
  }

 private:
  std::string rewind(const Json& target) {
    const auto found =
        std::find_if(messages_.begin(), messages_.end(), [&](const Json& m) { return value_at(m, "id") == target; });
    report_.skipped["rewound"] += messages_.end() - found;
    report_.used -= messages_.end() - found;
    messages_.erase(found, messages_.end());
    return "rewind";
  }

  std::string replay(const std::string& type, Json& json) {
    const Json id = value_at(json, "id");
    const auto found =
        std::find_if(messages_.rbegin(), messages_.rend(), [&](const Json& m) { return value_at(m, "id") == id; });
    if (found == messages_.rend() || id.is_null()) {
      messages_.push_back(std::move(json));
      return "";
    }
    for (auto& [key, value] : json.items())
      if (key != "type" || type != "message_update") (*found)[key] = std::move(value);
    return "replaces_or_updates_a_message";
  }

  std::string stream(const std::string& type, Json& json) {
    const double time = time_of(value_at(json, "timestamp"));
    open_session("main", time, "", "gemini-cli", text_at(json, "model"));
    if (type == "message") {
      const bool is_user = text_at(json, "role") == "user";
      message("main", time, is_user ? "human" : "agent", joined_text(value_at(json, "content")),
              is_user ? "typed" : "text");
    } else if (type == "tool_use") {
      tool_call("main", time, text_at(json, "tool_id"), text_at(json, "tool_name"), value_at(json, "parameters"));
    } else if (type == "tool_result") {
      tool_result("main", time, text_at(json, "tool_id"), joined_text(value_at(json, "output")),
                  text_at(json, "status") != "success");
    } else if (type == "result") {
      const Json& stats = value_at(json, "stats");
      if (stats.is_object())
        emit("usage", "main", time,
             {{"id", "result"},
              {"input_tokens", integer_at(stats, "input_tokens") - integer_at(stats, "cached")},
              {"output_tokens", integer_at(stats, "output_tokens")},
              {"cached_tokens", integer_at(stats, "cached")},
              {"cache_write_tokens", 0}});
      emit("session_end", "main", time, {{"reason", text_at(json, "status")}});
    } else {
      note("main", time, type, text_at(json, "message"));
    }
    return "";
  }

  std::vector<Json> messages_;
};

}  // namespace

std::unique_ptr<Importer> make_gemini_importer() {
  return std::make_unique<GeminiImporter>();
}
std::unique_ptr<Importer> make_gemini_lines_importer() {
  return std::make_unique<GeminiLinesImporter>();
}

}  // namespace ks::trace
