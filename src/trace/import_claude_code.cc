// Claude Code: transcripts on disk (versions 1.0 to 2.1) and the event lines of `-p --output-format stream-json`.
// Helpers come as side chains inside the file (1.0), as agent_progress records (2.1.14 on) or as files of their own.
// A person's messages typed while the agent works stand only in queue records or queued_command attachments.
// Every line of an API message repeats the usage so far, so usage events carry the message id and the last one counts.
#include <array>
#include <deque>
#include <set>

#include "base/hash.h"
#include "trace/importer.h"

namespace ks::trace {

namespace {

constexpr std::array<std::string_view, 31> kKeep = {"type",
                                                    "subtype",
                                                    "uuid",
                                                    "parentUuid",
                                                    "isSidechain",
                                                    "isMeta",
                                                    "isCompactSummary",
                                                    "agentId",
                                                    "timestamp",
                                                    "message",
                                                    "data",
                                                    "operation",
                                                    "content",
                                                    "attachment",
                                                    "cwd",
                                                    "sessionId",
                                                    "total_cost_usd",
                                                    "is_error",
                                                    "result",
                                                    "session_id",
                                                    "model",
                                                    "parent_tool_use_id",
                                                    "isSynthetic",
                                                    "origin",
                                                    "hookErrors",
                                                    "stopReason",
                                                    "durationMs",
                                                    "version",
                                                    "claude_code_version",
                                                    "summary",
                                                    "isReplay"};

/// Large or many, and nothing of them in our model.
constexpr std::array<std::string_view, 12> kSkip = {
    "normalizedMessages", "fullOutput",   "signature",     "cache_creation", "server_tool_use", "service_tier",
    "stop_sequence",      "stop_details", "inference_geo", "iterations",     "caller",          "context_management"};

class ClaudeCodeImporter final : public Importer {
 public:
  ClaudeCodeImporter() : Importer("claude-code") { parser_.set_skip(kSkip); }
  void finish() override {
    for (Queued& item : queue_) person(item.time, std::move(item.text), "queued");
    Importer::finish();
  }

 protected:
  std::span<const std::string_view> keep() const override { return kKeep; }
  std::string record(Json& json) override;

 private:
  struct Queued {
    double time;
    std::string text;
  };

  bool is_copy(const Json& json);
  std::string session_of(const Json& json, double time);
  std::string assistant(const Json& api, const std::string& session, double time);
  std::string user(const Json& json, Json& api, const std::string& session, double time);
  void user_text(const Json& json, std::string text, const std::string& session, double time, const char* place);
  std::string system(const Json& json, double time);
  std::string progress(Json& json, double time);
  std::string queue_operation(const Json& json, double time);
  std::string attachment(const Json& json, double time);
  std::string stream_result(const Json& json, double time);
  void person(double time, std::string text, const char* source);
  bool take_text(std::multiset<std::string>& from, const std::string& text);

  std::deque<Queued> queue_;                                  ///< typed while the agent was busy, not delivered yet
  std::multiset<std::string> delivered_;                      ///< told as messages when they left the queue
  int64_t removed_as_attachment_ = 0;                         ///< their "remove" is still to come
  std::unordered_map<std::string, std::string> side_chains_;  ///< helper by record id
  int helpers_ = 0;
  bool has_boundary_ = false;
};

bool ClaudeCodeImporter::is_copy(const Json& json) {
  const Json& uuid = value_at(json, "uuid");
  if (!seen_ || !uuid.is_string()) return false;
  const auto& text = uuid.get_ref<const std::string&>();
  return !seen_->insert(base::buffer_hash(text.data(), text.size(), 0)).second;
}

std::string ClaudeCodeImporter::session_of(const Json& json, double time) {
  const std::string parent_call = text_at(json, "parent_tool_use_id");
  if (!truth_at(json, "isSidechain") && parent_call.empty()) {
    open_session("main", time, "", "claude-code", "");
    return "main";
  }
  std::string session = parent_call.empty() ? "" : fmt::format("helper-{}", parent_call);
  const std::string agent = text_at(json, "agentId");
  if (!agent.empty()) session = fmt::format("agent-{}", agent);
  if (session.empty()) {
    const auto parent = side_chains_.find(text_at(json, "parentUuid"));
    session = parent != side_chains_.end() ? parent->second : fmt::format("helper-{}", ++helpers_);
    side_chains_[text_at(json, "uuid")] = session;
  }
  open_session(session, time, "main", "claude-code", "");
  return session;
}

std::string ClaudeCodeImporter::record(Json& json) {
  const std::string type = text_at(json, "type");
  if (is_copy(json)) return "copy_of_a_record_seen_before";
  const double time = time_of(value_at(json, "timestamp"));
  if (folder_.empty()) folder_ = text_at(json, "cwd");
  if (type == "queue-operation") return queue_operation(json, time);
  if (type == "progress") return progress(json, time);
  if (type == "system") return system(json, time);
  if (type == "attachment") return attachment(json, time);
  if (type == "result") return stream_result(json, time);
  if (type != "assistant" && type != "user") {
    constexpr std::array<std::string_view, 12> kKnown = {
        "file-history-snapshot", "summary",          "last-prompt",  "pr-link",
        "permission-mode",       "custom-title",     "stream_event", "tool_progress",
        "tool_use_summary",      "rate_limit_event", "ai-title",     "agent-name"};
    if (std::find(kKnown.begin(), kKnown.end(), type) != kKnown.end()) return type;
    count_problem("unknown_record_type");
    return "unknown:" + type.substr(0, 40);
  }
  const std::string session = session_of(json, time);
  Json& api = json["message"];
  return type == "assistant" ? assistant(api, session, time) : user(json, api, session, time);
}

std::string ClaudeCodeImporter::assistant(const Json& api, const std::string& session, double time) {
  const Json& content = value_at(api, "content");
  const std::string model = text_at(api, "model");
  if (content.is_string()) message(session, time, "agent", content.get<std::string>(), "text");
  if (content.is_array()) {
    for (const Json& block : content) {
      const std::string type = text_at(block, "type");
      if (type == "text")
        message(session, time, "agent", text_at(block, "text"), model == "<synthetic>" ? "synthetic" : "text");
      if (type == "thinking") message(session, time, "agent", text_at(block, "thinking"), "thinking");
      if (type == "tool_use" || type == "server_tool_use")
        tool_call(session, time, text_at(block, "id"), text_at(block, "name"), value_at(block, "input"));
      if (type == "web_search_tool_result")
        tool_result(session, time, text_at(block, "tool_use_id"), joined_text(value_at(block, "content")), false);
    }
  }
  const Json& usage = value_at(api, "usage");
  if (usage.is_object()) {
    Json body = Json::object();
    body["id"] = text_at(api, "id");
    body["input_tokens"] = integer_at(usage, "input_tokens");
    body["output_tokens"] = integer_at(usage, "output_tokens");
    body["cached_tokens"] = integer_at(usage, "cache_read_input_tokens");
    body["cache_write_tokens"] = integer_at(usage, "cache_creation_input_tokens");
    if (!model.empty()) body["model"] = model;
    emit("usage", session, time, std::move(body));
  }
  return "";
}

std::string ClaudeCodeImporter::user(const Json& json, Json& api, const std::string& session, double time) {
  Json& content = api.is_object() ? api["content"] : api;
  if (!content.is_array()) {
    user_text(json, joined_text(content), session, time, "typed");
    return "";
  }
  std::string text;
  bool has_result = false;
  for (const Json& block : content) {
    const std::string type = text_at(block, "type");
    if (type == "tool_result") {
      has_result = true;
      tool_result(session, time, text_at(block, "tool_use_id"), joined_text(value_at(block, "content")),
                  truth_at(block, "is_error"));
    } else if (type == "text") {
      if (!text.empty()) text += '\n';
      text += text_at(block, "text");
    }
  }
  user_text(json, std::move(text), session, time, has_result ? "beside_result" : "typed");
  return "";
}

void ClaudeCodeImporter::user_text(const Json& json, std::string text, const std::string& session, double time,
                                   const char* place) {
  if (text.empty()) return;
  const char* source = machine_source(text);
  const std::string origin = text_at(value_at(json, "origin"), "kind");
  if (truth_at(json, "isMeta") || truth_at(json, "isSynthetic")) source = *source ? source : "meta";
  if (!origin.empty() && origin != "human" && !*source) source = "notification";
  if (truth_at(json, "isCompactSummary")) source = "compact_summary";
  if (session != "main") source = "helper_prompt";
  if (!*source) return person(time, std::move(text), place);
  if (source == std::string_view("compact_summary")) {
    if (!has_boundary_) emit("compaction", session, time, Json::object());
    has_boundary_ = false;
  }
  message(session, time, "system", std::move(text), source);
}

/// A person's message, once: the queue and the transcript may both hold it.
void ClaudeCodeImporter::person(double time, std::string text, const char* source) {
  if (std::string_view(source) != "queued") {
    if (take_text(delivered_, text)) return;
    const auto queued =
        std::find_if(queue_.begin(), queue_.end(), [&](const Queued& item) { return item.text == text; });
    if (queued != queue_.end()) queue_.erase(queued);
  }
  message("main", time, "human", std::move(text), source);
}

bool ClaudeCodeImporter::take_text(std::multiset<std::string>& from, const std::string& text) {
  const auto found = from.find(text);
  if (found == from.end()) return false;
  from.erase(found);
  return true;
}

std::string ClaudeCodeImporter::queue_operation(const Json& json, double time) {
  const std::string operation = text_at(json, "operation");
  open_session("main", time, "", "claude-code", "");
  if (operation == "enqueue") {
    std::string text = joined_text(value_at(json, "content"));
    const char* source = machine_source(text);
    if (*source) {
      message("main", time, "system", std::move(text), source);
    } else if (!text.empty()) {
      queue_.push_back({time, std::move(text)});
    }
    return "";
  }
  if (operation == "dequeue") {  // it comes as a user record now
    if (!queue_.empty()) queue_.pop_front();
    return "";
  }
  if (operation == "remove" || operation == "popAll") {
    if (removed_as_attachment_ > 0) {
      --removed_as_attachment_;
    } else if (!queue_.empty()) {
      Queued item = std::move(queue_.front());
      queue_.pop_front();
      delivered_.insert(item.text);
      person(item.time, std::move(item.text), "queued");
    }
    return "";
  }
  return "queue-operation:" + operation.substr(0, 40);
}

std::string ClaudeCodeImporter::attachment(const Json& json, double time) {
  const Json& content = value_at(json, "attachment");
  const std::string type = text_at(content, "type");
  open_session("main", time, "", "claude-code", "");
  if (type == "queued_command") {
    std::string text = joined_text(value_at(content, "prompt"));
    const bool is_notification = *machine_source(text) || text_at(content, "commandMode") == "task-notification";
    if (is_notification) {
      message("main", time, "system", std::move(text), "notification");
    } else if (!take_text(delivered_, text)) {
      const auto queued =
          std::find_if(queue_.begin(), queue_.end(), [&](const Queued& item) { return item.text == text; });
      if (queued != queue_.end()) {
        queue_.erase(queued);
        ++removed_as_attachment_;
      }
      person(time, std::move(text), "queued");
    }
    return "";
  }
  std::string text = joined_text(value_at(content, "content"));
  if (text.empty()) text = joined_text(value_at(content, "addedLines"));
  if (text.empty()) {
    note("main", time, "attachment:" + type);
  } else {
    message("main", time, "system", std::move(text), "attachment");
  }
  return "";
}

std::string ClaudeCodeImporter::system(const Json& json, double time) {
  const std::string subtype = text_at(json, "subtype");
  if (subtype == "init") {
    folder_ = text_at(json, "cwd");
    open_session("main", time, "", "claude-code", text_at(json, "model"));
    return "";
  }
  open_session("main", time, "", "claude-code", "");
  if (subtype == "compact_boundary") {
    has_boundary_ = true;
    emit("compaction", "main", time, Json::object());
    return "";
  }
  note("main", time, subtype.empty() ? "system" : subtype, text_at(json, "content"));
  return "";
}

std::string ClaudeCodeImporter::progress(Json& json, double time) {
  Json& data = json["data"];
  const std::string type = text_at(data, "type");
  open_session("main", time, "", "claude-code", "");
  if (type != "agent_progress") {
    note("main", time, type.empty() ? "progress" : type);
    return "";
  }
  const std::string session = fmt::format("agent-{}", text_at(data, "agentId"));
  open_session(session, time, "main", "claude-code", "");
  Json& inner = data["message"];
  if (!inner.is_object()) return "agent_progress_without_message";
  const double inner_time = time_of(value_at(inner, "timestamp"));
  const double when = inner_time > 0 ? inner_time : time;
  if (time > when) note("main", time, "agent_progress");
  if (text_at(inner, "type") == "assistant") return assistant(value_at(inner, "message"), session, when);
  return user(inner, inner["message"], session, when);
}

std::string ClaudeCodeImporter::stream_result(const Json& json, double time) {
  open_session("main", time, "", "claude-code", "");
  if (value_at(json, "total_cost_usd").is_number())
    emit("usage", "main", time, {{"id", "total_cost"}, {"cost_usd", number_at(json, "total_cost_usd")}});
  emit("session_end", "main", time, {{"reason", text_at(json, "subtype")}, {"is_error", truth_at(json, "is_error")}});
  return "";
}

}  // namespace

std::unique_ptr<Importer> make_claude_code_importer() {
  return std::make_unique<ClaudeCodeImporter>();
}

}  // namespace ks::trace
