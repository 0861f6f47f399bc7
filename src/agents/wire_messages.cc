// Anthropic Messages. Blocks of an answer are given back as they came (thinking has a signature that must not be
// lost); results of tools and what a person says share one message, because roles take turns.
#include "agents/model_wire.h"

namespace ks::agents {
namespace {

constexpr int kDefaultOutput = 32000;  ///< the dialect wants a limit

Json object_of(const std::string& arguments) {
  Json input = Json::parse(arguments.empty() ? "{}" : arguments, nullptr, false);
  return input.is_object() ? input : Json::object();
}

Json blocks_of(const Entry& entry) {
  if (entry.role == Entry::Role::kUser) return Json::array({{{"type", "text"}, {"text", entry.text}}});
  if (entry.role == Entry::Role::kTool)
    return Json::array({{{"type", "tool_result"},
                         {"tool_use_id", entry.call_id},
                         {"content", entry.text},
                         {"is_error", entry.is_error}}});
  if (entry.raw.is_array() && !entry.raw.empty()) return entry.raw;
  Json blocks = Json::array();
  if (!entry.text.empty()) blocks.push_back({{"type", "text"}, {"text", entry.text}});
  for (const auto& call : entry.calls)
    blocks.push_back(
        {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", object_of(call.arguments)}});
  if (blocks.empty()) blocks.push_back({{"type", "text"}, {"text", "(nothing)"}});
  return blocks;
}

class MessagesReader : public AnswerReader {
 public:
  void event(const std::string& name, const std::string& data) override {
    const Json event = Json::parse(data, nullptr, false);
    if (!event.is_object()) return;
    const auto type = base::value_or<std::string>(event, "type", name);
    if (type == "message_start") take_start(base::value_or<Json>(event, "message", Json::object()));
    if (type == "content_block_start") start_block(base::value_or<Json>(event, "content_block", Json::object()));
    if (type == "content_block_delta") take_delta(base::value_or<Json>(event, "delta", Json::object()));
    if (type == "content_block_stop") end_block();
    if (type == "message_delta") {
      take_usage(base::value_or<Json>(event, "usage", Json::object()));
      reason_ =
          base::value_or<std::string>(base::value_or<Json>(event, "delta", Json::object()), "stop_reason", reason_);
    }
    if (type == "message_stop") answer_.is_whole = true;
    if (type == "error") {
      answer_.error = provider_error(event);
      answer_.may_retry = is_passing_error(event);
    }
  }

  ModelAnswer finish() override {
    answer_.is_whole = answer_.is_whole && answer_.error.empty();
    answer_.is_cut_off = reason_ == "max_tokens" || reason_ == "model_context_window_exceeded";
    return answer_;
  }

 private:
  void take_start(const Json& message) {
    answer_.id = base::value_or<std::string>(message, "id", "");
    answer_.raw = Json::array();
    take_usage(base::value_or<Json>(message, "usage", Json::object()));
  }

  /// Counts of later events replace earlier ones, where they are there.
  void take_usage(const Json& usage) {
    TokenUsage& known = answer_.usage;
    known.fresh = base::value_or<int64_t>(usage, "input_tokens", known.fresh);
    known.cached = base::value_or<int64_t>(usage, "cache_read_input_tokens", known.cached);
    known.cache_write = base::value_or<int64_t>(usage, "cache_creation_input_tokens", known.cache_write);
    known.output = base::value_or<int64_t>(usage, "output_tokens", known.output);
  }

  void start_block(Json block) {
    block_ = std::move(block);
    input_.clear();
  }

  void take_delta(const Json& delta) {
    const auto type = base::value_or<std::string>(delta, "type", "");
    const auto append = [&](const char* from, const char* to) {
      block_[to] = base::value_or<std::string>(block_, to, "") + base::value_or<std::string>(delta, from, "");
    };
    if (type == "text_delta") append("text", "text");
    if (type == "thinking_delta") append("thinking", "thinking");
    if (type == "signature_delta") append("signature", "signature");
    if (type == "input_json_delta") input_ += base::value_or<std::string>(delta, "partial_json", "");
  }

  void end_block() {
    if (!block_.is_object()) return;
    const auto type = base::value_or<std::string>(block_, "type", "");
    if (type == "text") answer_.text += base::value_or<std::string>(block_, "text", "");
    if (type == "tool_use") {
      if (input_.empty()) input_ = base::value_or<Json>(block_, "input", Json::object()).dump();
      answer_.calls.push_back(
          {base::value_or<std::string>(block_, "id", ""), base::value_or<std::string>(block_, "name", ""), input_});
      block_["input"] = object_of(input_);
    }
    if (!answer_.raw.is_array()) answer_.raw = Json::array();
    const bool is_blank = type == "text" && base::value_or<std::string>(block_, "text", "").empty();
    if (!is_blank) answer_.raw.push_back(block_);  // the dialect refuses empty texts that come back
    block_ = Json();
  }

  ModelAnswer answer_;
  Json block_;
  std::string input_, reason_;
};

class MessagesWire : public Wire {
 public:
  std::string path() const override { return "/v1/messages"; }

  std::vector<std::pair<std::string, std::string>> headers(const ModelSpec& spec) const override {
    std::vector<std::pair<std::string, std::string>> headers = {{"anthropic-version", "2023-06-01"}};
    if (!spec.key.empty()) headers.emplace_back("x-api-key", spec.key);
    return headers;
  }

  Json request(const ModelSpec& spec, const std::string& system, const std::vector<Entry>& entries,
               const std::vector<ToolOffer>& tools) const override {
    Json messages = Json::array();
    for (const auto& entry : entries) {
      const char* role = entry.role == Entry::Role::kAgent ? "assistant" : "user";
      if (messages.empty() || messages.back().at("role") != role)
        messages.push_back({{"role", role}, {"content", Json::array()}});
      for (Json& block : blocks_of(entry)) messages.back().at("content").push_back(std::move(block));
    }
    // What has been said before is read from the provider's cache.
    const Json cache = {{"type", "ephemeral"}};
    if (!messages.empty() && messages.back().at("role") == "user")
      messages.back().at("content").back()["cache_control"] = cache;
    Json offered = Json::array();
    for (const auto& tool : tools)
      offered.push_back({{"name", tool.name}, {"description", tool.description}, {"input_schema", tool.parameters}});
    return {{"model", spec.model},
            {"max_tokens", spec.max_output > 0 ? spec.max_output : kDefaultOutput},
            {"system", Json::array({{{"type", "text"}, {"text", system}, {"cache_control", cache}}})},
            {"messages", std::move(messages)},
            {"tools", std::move(offered)},
            {"stream", true}};
  }

  std::unique_ptr<AnswerReader> reader() const override { return std::make_unique<MessagesReader>(); }
};

}  // namespace

std::unique_ptr<Wire> make_messages_wire() {
  return std::make_unique<MessagesWire>();
}

}  // namespace ks::agents
