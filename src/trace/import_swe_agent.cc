// SWE-agent (.traj: a list of steps with action and observation) and mini-SWE-agent (.traj.json: a list of messages,
// where the command is a code block in the agent's text, or in newer versions a tool call).
#include "trace/document_importer.h"

namespace ks::trace {

namespace {

class SweAgentImporter final : public DocumentImporter {
 public:
  SweAgentImporter() : DocumentImporter("swe-agent") {}

 protected:
  Json* elements(Json& root) override { return member(root, "trajectory"); }

  void begin(Json& root) override {
    open_session("main", 0, "", "swe-agent", "");
    const Json* history = member(root, "history");
    if (!history || !history->is_array()) return;
    bool has_task = false;
    for (const Json& entry : *history) {
      const std::string role = text_at(entry, "role");
      if (role == "system") message("main", 0, "system", joined_text(value_at(entry, "content")), "system_prompt");
      if (role != "user" || has_task) continue;
      const bool is_demonstration = truth_at(entry, "is_demo") || text_at(entry, "message_type") == "demonstration";
      message("main", 0, is_demonstration ? "system" : "human", joined_text(value_at(entry, "content")),
              is_demonstration ? "injected" : "typed");
      has_task = !is_demonstration;
    }
  }

  std::string record(Json& json) override {
    const std::string action = text_at(json, "action");
    message("main", 0, "agent", text_at(json, "thought"), "text");
    const std::string id = "step-" + std::to_string(report_.records);
    if (!action.empty()) {
      tool_call("main", 0, id, "bash", {{"command", action}});
      tool_result("main", 0, id, joined_text(value_at(json, "observation")), false);
    }
    return "";
  }

  void end(Json& root) override {
    const Json& info = value_at(root, "info");
    const Json& stats = value_at(info, "model_stats");
    if (stats.is_object()) {
      emit("usage", "main", 0,
           {{"id", "model_stats"},
            {"calls", integer_at(stats, "api_calls")},
            {"input_tokens", integer_at(stats, "tokens_sent")},
            {"output_tokens", integer_at(stats, "tokens_received")},
            {"cached_tokens", 0},
            {"cache_write_tokens", 0},
            {"cost_usd", number_at(stats, "instance_cost")}});
    }
    emit("session_end", "main", 0, {{"reason", text_at(info, "exit_status")}});
  }
};

/// The command of "```bash …```" or "```mswea_bash_command …```" in a text; "" where there is none.
std::string fenced_command(const std::string& text) {
  for (const std::string fence : {"```bash\n", "```mswea_bash_command\n", "```sh\n"}) {
    const size_t begin = text.find(fence);
    if (begin == std::string::npos) continue;
    const size_t start = begin + fence.size(), end = text.find("\n```", start);
    return text.substr(start, end == std::string::npos ? end : end - start);
  }
  return "";
}

class MiniSweAgentImporter final : public DocumentImporter {
 public:
  MiniSweAgentImporter() : DocumentImporter("mini-swe-agent") {}

 protected:
  Json* elements(Json& root) override { return member(root, "messages"); }

  std::string record(Json& json) override {
    const std::string role = text_at(json, "role");
    const Json& extra = value_at(json, "extra");
    const double time = time_of(value_at(extra, "timestamp"));
    open_session("main", time, "", "mini-swe-agent", "");
    std::string text = joined_text(value_at(json, "content"));
    if (role == "system") {
      message("main", time, "system", std::move(text), "system_prompt");
    } else if (role == "assistant") {
      agent(json, std::move(text), time);
    } else if (role == "tool") {
      const bool is_error = fails(text);
      tool_result("main", time, text_at(json, "tool_call_id"), std::move(text), is_error);
    } else if (role == "user" && !open_call_.empty()) {
      tool_result("main", time, open_call_, text, fails(text));
      open_call_.clear();
    } else if (role == "user") {
      message("main", time, has_task_ ? "system" : "human", std::move(text), has_task_ ? "injected" : "typed");
      has_task_ = true;
    } else if (role == "exit") {
      emit("session_end", "main", time, {{"reason", text_at(extra, "exit_status")}});
    } else {
      count_problem("unknown_record_type");
      return "unknown:" + role.substr(0, 40);
    }
    return "";
  }

  void end(Json& root) override {
    const Json& info = value_at(root, "info");
    if (const Json& cost = value_at(value_at(info, "model_stats"), "instance_cost"); cost.is_number())
      emit("usage", "main", 0, {{"id", "total_cost"}, {"cost_usd", cost}});
    emit("session_end", "main", 0, {{"reason", text_at(info, "exit_status")}});
  }

 private:
  static bool fails(const std::string& text) {
    const size_t code = text.find("<returncode>");
    return code != std::string::npos && !text.substr(code + 12).starts_with("0<");
  }

  void agent(const Json& json, std::string text, double time) {
    const Json& response = value_at(value_at(json, "extra"), "response");
    usage(response, time);
    const Json& calls = value_at(json, "tool_calls");
    if (calls.is_array() && !calls.empty()) {
      message("main", time, "agent", std::move(text), "text");
      for (const Json& call : calls) {
        const Json& function = value_at(call, "function");
        Counters ignored;
        auto arguments = parser_.parse_unpadded(text_at(function, "arguments"), ignored);
        tool_call("main", time, text_at(call, "id"), text_at(function, "name"),
                  arguments ? std::move(*arguments) : Json::object());
      }
      return;
    }
    const std::string command = fenced_command(text);
    message("main", time, "agent", std::move(text), "text");
    if (command.empty()) return;
    open_call_ = "command-" + std::to_string(report_.records);
    tool_call("main", time, open_call_, "bash", {{"command", command}});
  }

  void usage(const Json& response, double time) {
    const Json& tokens = value_at(response, "usage");
    if (!tokens.is_object()) return;
    const int64_t cached = integer_at(value_at(tokens, "prompt_tokens_details"), "cached_tokens");
    emit("usage", "main", time,
         {{"id", text_at(response, "id")},
          {"input_tokens", integer_at(tokens, "prompt_tokens") - cached},
          {"output_tokens", integer_at(tokens, "completion_tokens")},
          {"cached_tokens", cached},
          {"cache_write_tokens", integer_at(tokens, "cache_creation_input_tokens")},
          {"reasoning_tokens", integer_at(value_at(tokens, "completion_tokens_details"), "reasoning_tokens")}});
  }

  std::string open_call_;
  bool has_task_ = false;
};

}  // namespace

std::unique_ptr<Importer> make_swe_agent_importer() {
  return std::make_unique<SweAgentImporter>();
}
std::unique_ptr<Importer> make_mini_swe_agent_importer() {
  return std::make_unique<MiniSweAgentImporter>();
}

}  // namespace ks::trace
