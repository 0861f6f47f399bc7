// OpenHands: a list of events, actions and observations linked by "cause". "source: user" also covers what the machine
// does in the user's name (recall), so only messages count as a person's. Usage is cumulative: differences count.
#include <array>

#include "trace/document_importer.h"

namespace ks::trace {

namespace {

class OpenHandsImporter final : public DocumentImporter {
 public:
  OpenHandsImporter() : DocumentImporter("openhands") {}

 protected:
  Json* elements(Json& root) override {
    if (root.is_array()) return &root;
    for (const char* key : {"history", "events", "trajectory"})
      if (Json* list = member(root, key)) return list;
    return nullptr;
  }
  std::string record(Json& json) override;

 private:
  std::string action(const Json& json, const std::string& name, double time);
  void usage(const Json& metrics, const std::string& id, double time);

  std::array<int64_t, 4> used_{};  ///< prompt, completion, cache read, cache write
  double cost_usd_ = 0;
};

std::string id_of(const Json& value) {
  return value.is_null() ? "" : "event-" + value.dump();
}

std::string OpenHandsImporter::record(Json& json) {
  const double time = time_of(value_at(json, "timestamp"));
  open_session("main", time, "", "openhands", "");
  const std::string id = id_of(value_at(json, "id"));
  if (value_at(json, "llm_metrics").is_object()) usage(json["llm_metrics"], id, time);
  if (const std::string name = text_at(json, "action"); !name.empty()) return action(json, name, time);
  const std::string observation = text_at(json, "observation");
  if (observation.empty()) {
    note("main", time, "event");
    return "";
  }
  if (observation == "agent_state_changed" || observation == "null") {
    note("main", time, observation);
    return "";
  }
  const bool is_error =
      observation == "error" || integer_at(value_at(value_at(json, "extras"), "metadata"), "exit_code") > 0;
  const std::string cause = id_of(value_at(json, "cause"));
  if (observation == "recall" || cause.empty()) {
    message("main", time, "system", text_at(json, "content"), "injected");
    return "";
  }
  tool_result("main", time, cause, text_at(json, "content"), is_error);
  return "";
}

std::string OpenHandsImporter::action(const Json& json, const std::string& name, double time) {
  const Json& args = value_at(json, "args");
  const std::string source = text_at(json, "source");
  if (name == "system") {
    message("main", time, "system", text_at(args, "content"), "system_prompt");
  } else if (name == "message") {
    const bool is_user = source == "user";
    message("main", time, is_user ? "human" : "agent", text_at(args, "content"), is_user ? "typed" : "text");
  } else if (name == "finish") {
    message("main", time, "agent", text_at(args, "final_thought"), "text");
    emit("session_end", "main", time, {{"reason", "finish"}});
  } else if (name == "recall" || name == "change_agent_state" || name == "null" || source == "user") {
    note("main", time, name);
  } else if (name == "condensation") {
    emit("compaction", "main", time, Json::object());
  } else if (name == "think") {
    message("main", time, "agent", text_at(args, "thought"), "thinking");
  } else {
    message("main", time, "agent", text_at(args, "thought"), "text");
    tool_call("main", time, id_of(value_at(json, "id")), name, args);
  }
  return "";
}

void OpenHandsImporter::usage(const Json& metrics, const std::string& id, double time) {
  const Json& total = value_at(metrics, "accumulated_token_usage");
  const std::array<int64_t, 4> now = {integer_at(total, "prompt_tokens"), integer_at(total, "completion_tokens"),
                                      integer_at(total, "cache_read_tokens"), integer_at(total, "cache_write_tokens")};
  const double cost_usd = number_at(metrics, "accumulated_cost");
  if (now == used_ && cost_usd == cost_usd_) return;
  const int64_t cached = now[2] - used_[2], written = now[3] - used_[3];
  emit("usage", "main", time,
       {{"id", id},
        {"input_tokens", now[0] - used_[0] - cached - written},
        {"output_tokens", now[1] - used_[1]},
        {"cached_tokens", cached},
        {"cache_write_tokens", written},
        {"cost_usd", cost_usd - cost_usd_}});
  used_ = now;
  cost_usd_ = cost_usd;
}

}  // namespace

std::unique_ptr<Importer> make_openhands_importer() {
  return std::make_unique<OpenHandsImporter>();
}

}  // namespace ks::trace
