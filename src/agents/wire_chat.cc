// OpenAI Chat Completions, as its many compatible servers speak it.
#include "agents/model_wire.h"

namespace ks::agents {
namespace {

Json message_of(const Entry& entry) {
  if (entry.role == Entry::Role::kUser) return {{"role", "user"}, {"content", entry.text}};
  if (entry.role == Entry::Role::kTool)
    return {{"role", "tool"}, {"tool_call_id", entry.call_id}, {"content", entry.text}};
  Json message = {{"role", "assistant"}, {"content", entry.text.empty() ? Json() : Json(entry.text)}};
  Json calls = Json::array();
  for (const auto& call : entry.calls)
    calls.push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

class ChatReader : public AnswerReader {
 public:
  void event(const std::string& /*name*/, const std::string& data) override {
    const Json chunk = Json::parse(data, nullptr, false);
    if (!chunk.is_object()) return;
    if (chunk.contains("error")) {
      answer_.error = provider_error(chunk);
      answer_.may_retry = is_passing_error(chunk);
      return;
    }
    if (answer_.id.empty()) answer_.id = base::value_or<std::string>(chunk, "id", "");
    if (const auto usage = chunk.find("usage"); usage != chunk.end() && usage->is_object()) take_usage(*usage);
    const auto choices = chunk.find("choices");
    if (choices == chunk.end() || !choices->is_array() || choices->empty()) return;
    const Json& choice = choices->front();
    if (const auto delta = choice.find("delta"); delta != choice.end() && delta->is_object()) take_delta(*delta);
    const auto why = base::value_or<std::string>(choice, "finish_reason", "");
    if (!why.empty()) reason_ = why;
  }

  ModelAnswer finish() override {
    // Servers differ: some leave out the mark at the end, none leaves out the reason of a complete answer.
    answer_.is_whole = !reason_.empty() && answer_.error.empty();
    answer_.is_cut_off = reason_ == "length";
    return answer_;
  }

 private:
  void take_usage(const Json& usage) {
    const Json none = Json::object();
    const Json in = base::value_or<Json>(usage, "prompt_tokens_details", none);
    const Json out = base::value_or<Json>(usage, "completion_tokens_details", none);
    answer_.usage.cached = base::value_or<int64_t>(in, "cached_tokens", 0);
    answer_.usage.fresh = base::value_or<int64_t>(usage, "prompt_tokens", 0) - answer_.usage.cached;
    answer_.usage.output = base::value_or<int64_t>(usage, "completion_tokens", 0);
    answer_.usage.reasoning = base::value_or<int64_t>(out, "reasoning_tokens", 0);
  }

  void take_delta(const Json& delta) {
    answer_.text += base::value_or<std::string>(delta, "content", "");
    const auto calls = delta.find("tool_calls");
    if (calls == delta.end() || !calls->is_array()) return;
    for (const Json& part : *calls) {
      constexpr size_t kMostCalls = 256;
      const auto index = base::value_or<size_t>(part, "index", answer_.calls.size());
      if (index >= kMostCalls) continue;
      if (index >= answer_.calls.size()) answer_.calls.resize(index + 1);
      ToolCall& call = answer_.calls[index];
      if (call.id.empty()) call.id = base::value_or<std::string>(part, "id", "");
      const Json function = base::value_or<Json>(part, "function", Json::object());
      if (call.name.empty()) call.name = base::value_or<std::string>(function, "name", "");
      call.arguments += base::value_or<std::string>(function, "arguments", "");
    }
  }

  ModelAnswer answer_;
  std::string reason_;
};

class ChatWire : public Wire {
 public:
  std::string path() const override { return "/chat/completions"; }

  std::vector<std::pair<std::string, std::string>> headers(const ModelSpec& spec) const override {
    if (spec.key.empty()) return {};
    return {{"Authorization", "Bearer " + spec.key}};
  }

  Json request(const ModelSpec& spec, const std::string& system, const std::vector<Entry>& entries,
               const std::vector<ToolOffer>& tools) const override {
    Json messages = Json::array({{{"role", "system"}, {"content", system}}});
    for (const auto& entry : entries) messages.push_back(message_of(entry));
    Json offered = Json::array();
    for (const auto& tool : tools)
      offered.push_back(
          {{"type", "function"},
           {"function", {{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}}}});
    Json body = {{"model", spec.model},
                 {"messages", std::move(messages)},
                 {"tools", std::move(offered)},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}};
    if (spec.max_output > 0) body[spec.max_output_key] = spec.max_output;
    return body;
  }

  std::unique_ptr<AnswerReader> reader() const override { return std::make_unique<ChatReader>(); }
};

}  // namespace

std::unique_ptr<Wire> make_chat_wire() {
  return std::make_unique<ChatWire>();
}

}  // namespace ks::agents
