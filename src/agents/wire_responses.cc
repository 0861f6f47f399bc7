// OpenAI Responses. Nothing is stored at the provider: the items of each answer are given back in the next request, its
// sealed reasoning too.
#include "agents/model_wire.h"

namespace ks::agents {
namespace {

void add_items(Json& input, const Entry& entry) {
  if (entry.role == Entry::Role::kUser) {
    input.push_back({{"role", "user"}, {"content", entry.text}});
  } else if (entry.role == Entry::Role::kTool) {
    input.push_back({{"type", "function_call_output"}, {"call_id", entry.call_id}, {"output", entry.text}});
  } else if (entry.raw.is_array()) {
    for (const Json& item : entry.raw) input.push_back(item);
  } else {
    if (!entry.text.empty()) input.push_back({{"role", "assistant"}, {"content", entry.text}});
    for (const auto& call : entry.calls)
      input.push_back(
          {{"type", "function_call"}, {"call_id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
}

std::string text_of_message(const Json& item) {
  std::string text;
  for (const Json& part : base::value_or<Json>(item, "content", Json::array()))
    if (part.is_object()) text += base::value_or<std::string>(part, "text", "");
  return text;
}

class ResponsesReader : public AnswerReader {
 public:
  void event(const std::string& name, const std::string& data) override {
    const Json event = Json::parse(data, nullptr, false);
    if (!event.is_object()) return;
    const auto type = base::value_or<std::string>(event, "type", name);
    if (type == "response.output_item.done" && event.contains("item")) take_item(event.at("item"));
    if (type == "response.completed" || type == "response.incomplete") take_end(event, type);
    if (type == "response.failed" || type == "error") {
      const Json response = base::value_or<Json>(event, "response", Json::object());
      const Json& where = response.contains("error") ? response : event;
      answer_.error = provider_error(where);
      if (answer_.error.empty()) answer_.error = "the provider gives no reason";
      answer_.may_retry = is_passing_error(where);
    }
  }

  ModelAnswer finish() override { return answer_; }

 private:
  void take_item(const Json& item) {
    if (!item.is_object()) return;
    const auto type = base::value_or<std::string>(item, "type", "");
    Json kept = item;
    kept.erase("status");
    if (type != "reasoning") kept.erase("id");
    if (answer_.raw.is_null()) answer_.raw = Json::array();
    answer_.raw.push_back(std::move(kept));
    if (type == "message") answer_.text += text_of_message(item);
    if (type == "function_call")
      answer_.calls.push_back({base::value_or<std::string>(item, "call_id", ""),
                               base::value_or<std::string>(item, "name", ""),
                               base::value_or<std::string>(item, "arguments", "")});
  }

  void take_end(const Json& event, const std::string& type) {
    const Json none = Json::object();
    const Json response = base::value_or<Json>(event, "response", none);
    answer_.id = base::value_or<std::string>(response, "id", "");
    answer_.is_whole = true;
    answer_.is_cut_off = type == "response.incomplete";
    const Json usage = base::value_or<Json>(response, "usage", none);
    const Json in = base::value_or<Json>(usage, "input_tokens_details", none);
    const Json out = base::value_or<Json>(usage, "output_tokens_details", none);
    answer_.usage.cached = base::value_or<int64_t>(in, "cached_tokens", 0);
    answer_.usage.fresh = base::value_or<int64_t>(usage, "input_tokens", 0) - answer_.usage.cached;
    answer_.usage.output = base::value_or<int64_t>(usage, "output_tokens", 0);
    answer_.usage.reasoning = base::value_or<int64_t>(out, "reasoning_tokens", 0);
  }

  ModelAnswer answer_;
};

class ResponsesWire : public Wire {
 public:
  std::string path() const override { return "/responses"; }

  std::vector<std::pair<std::string, std::string>> headers(const ModelSpec& spec) const override {
    if (spec.key.empty()) return {};
    return {{"Authorization", "Bearer " + spec.key}};
  }

  Json request(const ModelSpec& spec, const std::string& system, const std::vector<Entry>& entries,
               const std::vector<ToolOffer>& tools) const override {
    Json input = Json::array();
    for (const auto& entry : entries) add_items(input, entry);
    Json offered = Json::array();
    for (const auto& tool : tools)
      offered.push_back({{"type", "function"},
                         {"name", tool.name},
                         {"description", tool.description},
                         {"parameters", tool.parameters},
                         {"strict", false}});
    Json body = {{"model", spec.model},
                 {"instructions", system},
                 {"input", std::move(input)},
                 {"tools", std::move(offered)},
                 {"store", false},
                 {"include", Json::array({"reasoning.encrypted_content"})},
                 {"stream", true}};
    if (spec.max_output > 0) body["max_output_tokens"] = spec.max_output;
    return body;
  }

  std::unique_ptr<AnswerReader> reader() const override { return std::make_unique<ResponsesReader>(); }
};

}  // namespace

std::unique_ptr<Wire> make_responses_wire() {
  return std::make_unique<ResponsesWire>();
}

}  // namespace ks::agents
