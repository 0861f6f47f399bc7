#include "agents/agent.h"

namespace ks::agents {
namespace {

constexpr const char* kStepNames[] = {"evaluate", "claim", "ask", "worked", "stop"};

Json figures_json(const EvaluationFigures& figures) {
  Json scenarios = Json::array();
  for (const auto& scenario : figures.scenarios)
    scenarios.push_back({{"name", scenario.name},
                         {"verdict", scenario.verdict},
                         {"time_us", scenario.time_us},
                         {"ratio", scenario.ratio}});
  return {{"number", figures.number},   {"outcome", figures.outcome},        {"reason", figures.reason},
          {"geomean", figures.geomean}, {"aa_p95", figures.aa_p95},          {"correct", figures.correct},
          {"total", figures.total},     {"scenarios", std::move(scenarios)}, {"memo", figures.memo}};
}

EvaluationFigures figures_from(const Json& json) {
  EvaluationFigures figures;
  figures.number = json.value("number", 0);
  figures.outcome = json.value("outcome", "");
  figures.reason = json.value("reason", "");
  figures.geomean = json.value("geomean", 0.0);
  figures.aa_p95 = json.value("aa_p95", 0.0);
  figures.correct = json.value("correct", 0);
  figures.total = json.value("total", 0);
  for (const Json& scenario : json.at("scenarios"))
    figures.scenarios.push_back({scenario.value("name", ""), scenario.value("verdict", ""),
                                 scenario.value("time_us", 0.0), scenario.value("ratio", 0.0)});
  figures.memo = json.value("memo", Json());
  return figures;
}

}  // namespace

const char* step_name(AgentStep::Kind kind) {
  return kStepNames[static_cast<int>(kind)];
}

Json to_json(const AgentContext& context) {
  Json history = Json::array(), messages = Json::array();
  for (const auto& figures : context.history) history.push_back(figures_json(figures));
  for (const auto& message : context.messages)
    messages.push_back({{"text", message.text}, {"focus", message.focus}, {"is_refusal", message.is_refusal}});
  return {{"folder", context.folder},
          {"candidate", context.candidate},
          {"task", context.task},
          {"goal", context.goal},
          {"seed", context.seed},
          {"minutes_left", context.minutes_left},
          {"evaluations_left", context.evaluations_left},
          {"goal_state", context.goal_state},
          {"history", std::move(history)},
          {"messages", std::move(messages)},
          {"new_messages", context.new_messages}};
}

AgentContext context_from_json(const Json& json) {
  AgentContext context;
  context.folder = json.value("folder", "");
  context.candidate = json.value("candidate", "");
  context.task = json.value("task", "");
  context.goal = json.value("goal", "");
  context.seed = json.value("seed", uint64_t{0});
  context.minutes_left = json.value("minutes_left", 0.0);
  context.evaluations_left = json.value("evaluations_left", 0);
  context.goal_state = json.value("goal_state", "");
  for (const Json& figures : json.at("history")) context.history.push_back(figures_from(figures));
  for (const Json& message : json.at("messages"))
    context.messages.push_back(
        {message.value("text", ""), message.value("focus", ""), message.value("is_refusal", false)});
  context.new_messages = json.value("new_messages", size_t{0});
  return context;
}

Json to_json(const AgentStep& step) {
  return {{"kind", step_name(step.kind)},  {"text", step.text}, {"claims", step.claims}, {"filter", step.filter},
          {"check_only", step.check_only}, {"memo", step.memo}};
}

AgentStep step_from_json(const Json& json) {
  AgentStep step;
  const std::string kind = base::require<std::string>(json, "kind", "the agent's step");
  bool known = false;
  for (int i = 0; i < 5; ++i)
    if (kind == kStepNames[i]) {
      step.kind = static_cast<AgentStep::Kind>(i);
      known = true;
    }
  if (!known) throw Error("the agent's step: unknown kind \"{}\"; known: evaluate, claim, ask, worked, stop", kind);
  step.text = base::value_or<std::string>(json, "text", "");
  step.claims = base::value_or<std::vector<std::string>>(json, "claims", {});
  step.filter = base::value_or<std::string>(json, "filter", "");
  step.check_only = base::value_or(json, "check_only", false);
  step.memo = json.value("memo", Json());
  return step;
}

}  // namespace ks::agents
