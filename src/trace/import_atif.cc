// ATIF (agent trajectory interchange format, versions 1.x): one document of steps, with helpers' trajectories inside.
// Prompt tokens include the cached ones. The final cost counts where it is given, else the steps' costs.
#include "trace/document_importer.h"

namespace ks::trace {

namespace {

class AtifImporter final : public DocumentImporter {
 public:
  AtifImporter() : DocumentImporter("atif") {}

 protected:
  Json* elements(Json& root) override { return member(root, "steps"); }

  void begin(Json& root) override {
    const Json& agent = value_at(root, "agent");
    open_session(session_, 0, session_ == "main" ? "" : "main", text_at(agent, "name"), text_at(agent, "model_name"));
    has_final_cost_ = value_at(value_at(root, "final_metrics"), "total_cost_usd").is_number();
  }

  std::string record(Json& json) override {
    if (truth_at(json, "is_copied_context")) return "copied_context";
    const double time = time_of(value_at(json, "timestamp"));
    const std::string source = text_at(json, "source");
    std::string text = joined_text(value_at(json, "message"));
    const std::string told = text_at(value_at(json, "extra"), "kernelseek_source");
    if (!told.empty() && source != "agent") {  // our own export says more than ATIF can
      message(session_, time, source == "user" ? "human" : "system", std::move(text), told.c_str());
    } else if (source == "user") {
      const char* machine = session_ == "main" ? machine_source(text) : "helper_prompt";
      message(session_, time, *machine ? "system" : "human", std::move(text), *machine ? machine : "typed");
    } else if (source == "system") {
      message(session_, time, "system", std::move(text), "system_prompt");
    } else {
      message(session_, time, "agent", text_at(json, "reasoning_content"), "thinking");
      message(session_, time, "agent", std::move(text), "text");
    }
    calls(json, time);
    metrics(json, time);
    return "";
  }

  void end(Json& root) override {
    const Json& total = value_at(value_at(root, "final_metrics"), "total_cost_usd");
    if (total.is_number()) emit("usage", session_, 0, {{"id", "total_cost"}, {"cost_usd", total}});
    Json* helpers = member(root, "subagent_trajectories");
    if (!helpers || !helpers->is_array() || session_ != "main") return;
    int number = 0;
    for (Json& helper : *helpers) {
      session_ = "helper-" + std::to_string(++number);
      begin(helper);
      if (Json* steps = elements(helper); steps && steps->is_array())
        for (Json& step : *steps) {
          ++report_.lines;
          if (step.is_object())
            take(step);
          else
            count_problem("not_an_object");
        }
      end(helper);
    }
    session_ = "main";
  }

 private:
  void calls(const Json& json, double time) {
    if (const Json& list = value_at(json, "tool_calls"); list.is_array())
      for (const Json& call : list)
        tool_call(session_, time, text_at(call, "tool_call_id"), text_at(call, "function_name"),
                  value_at(call, "arguments"));
    if (const Json& list = value_at(value_at(json, "observation"), "results"); list.is_array())
      for (const Json& result : list) {
        const std::string id = text_at(result, "source_call_id");
        std::string text = joined_text(value_at(result, "content"));
        if (id.empty())
          message(session_, time, "system", std::move(text), "injected");
        else
          tool_result(session_, time, id, std::move(text), false);
      }
  }

  void metrics(const Json& json, double time) {
    const Json& metrics = value_at(json, "metrics");
    if (!metrics.is_object()) return;
    const int64_t cached = integer_at(metrics, "cached_tokens");
    Json body = {{"id", session_ + "-step-" + std::to_string(report_.records)},
                 {"input_tokens", integer_at(metrics, "prompt_tokens") - cached},
                 {"output_tokens", integer_at(metrics, "completion_tokens")},
                 {"cached_tokens", cached},
                 {"cache_write_tokens", 0}};
    if (!has_final_cost_ && value_at(metrics, "cost_usd").is_number()) body["cost_usd"] = metrics["cost_usd"];
    emit("usage", session_, time, std::move(body));
  }

  std::string session_ = "main";
  bool has_final_cost_ = false;
};

}  // namespace

std::unique_ptr<Importer> make_atif_importer() {
  return std::make_unique<AtifImporter>();
}

}  // namespace ks::trace
