#include "agents/http_agent.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ks::agents {
namespace {

constexpr const char* kSystem =
    "You are a careful performance engineer. You work on one kernel in your folder, by yourself, with the tools that "
    "you "
    "are given. Nobody answers while you work; when you answer without calling a tool, your turn ends and the work is "
    "judged.";
constexpr const char* kHelperSystem =
    "You help a performance engineer with one piece of work in a shared folder. Do it with the tools that you are "
    "given. Your last answer, the one without a call, is your report: everything that was found, with figures.";
constexpr const char* kCutShort =
    "The run was interrupted while this call was at work. It may have had an effect or not; it was not made again.";

ModelClient::Setup client_setup(const HttpAgentSetup& setup, std::function<void(double)> wait,
                                std::function<std::string(const std::string&)> clean) {
  ModelClient::Setup client{setup.model, setup.send, setup.should_stop, std::move(wait), {}};
  client.note = [sink = setup.sink, clean = std::move(clean)](const std::string& what, const std::string& text) {
    sink("note", "main", {{"what", what}, {"text", clean(text)}});
  };
  return client;
}

}  // namespace

HttpAgent::HttpAgent(HttpAgentSetup setup)
    : setup_(std::move(setup)),
      log_(setup_.conversation),
      client_(client_setup(
          setup_, [this](double seconds) { wait(seconds); },
          [this](const std::string& text) { return redactor_.redact(text); })) {
  redactor_.add(setup_.model.key_variable, setup_.model.key);
}

void HttpAgent::wait(double seconds) const {
  constexpr double kTurn_s = 0.1;
  for (double waited = 0; waited < seconds && !setup_.should_stop(); waited += kTurn_s)
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(kTurn_s, seconds - waited)));
}

void HttpAgent::add(Conversation& conversation, Entry entry) {
  log_.add(conversation.session, entry, messages_seen_);
  conversation.entries.push_back(std::move(entry));
}

void HttpAgent::begin_or_go_on(const AgentContext& context) {
  has_begun_ = true;
  stack_ = log_.take_stack();
  helpers_ = log_.helpers();
  messages_seen_ = log_.messages_seen();
  const std::string why = why_no_isolation();
  setup_.sink("session_start", "main",
              {{"session", "main"},
               {"agent", name()},
               {"model", setup_.model.provider + ":" + setup_.model.model},
               {"isolated", why.empty()},
               {"unisolated", why}});
  if (stack_.empty()) {
    stack_.push_back({"main", {}});
    std::string text = setup_.prompt;
    if (!context.last_table.empty())
      text += fmt::format("\nEvaluation {} of the files as they lie:\n{}", context.history.back().number,
                          context.last_table);
    messages_seen_ = 0;
    setup_.sink("message", "main", {{"role", "system"}, {"source", "prompt"}, {"text", text}});
    add(stack_.back(), {Entry::Role::kUser, text});
    return;
  }
  // What was at work when the process died is not made again.
  for (const auto& call : stack_.back().open_calls()) give_result(call, {kCutShort, true});
  const auto& entries = stack_.back().entries;
  must_speak_ = stack_.size() == 1 && entries.back().role == Entry::Role::kAgent && entries.back().calls.empty();
}

/// The run has done what the first open call asked for.
void HttpAgent::answer_run(const AgentContext& context) {
  if (waits_for_.empty()) return;
  const ToolCall call = stack_.back().open_calls().front();
  std::string text;
  if (waits_for_ == "evaluate") {
    text = context.last_table;
    if (!context.history.empty() && context.history.back().outcome != "judged")
      text += "\n" + context.history.back().reason;
    text += fmt::format("\ngoal: {}; {}\n", context.goal, context.goal_state);
    if (context.evaluations_left < 1 << 30) text += fmt::format("evaluations left: {}\n", context.evaluations_left);
    if (context.minutes_left < 1e8) text += fmt::format("minutes left: {:.1f}\n", context.minutes_left);
  }
  for (; messages_seen_ < context.messages.size(); ++messages_seen_)
    text += (text.empty() ? "" : "\n") + context.messages[messages_seen_].text + "\n";
  if (text.empty()) text = "Nothing that is known calls for a question.";
  waits_for_.clear();
  give_result(call, {text, false});
}

/// Messages of the run that are no part of a result become the next thing that is said to the main conversation.
void HttpAgent::take_messages(const AgentContext& context) {
  if (stack_.size() != 1 || !stack_.back().open_calls().empty()) return;
  std::string text;
  for (; messages_seen_ < context.messages.size(); ++messages_seen_)
    text += (text.empty() ? "" : "\n\n") + context.messages[messages_seen_].text;
  if (text.empty() && must_speak_) text = "Go on.";
  must_speak_ = false;
  if (!text.empty()) add(stack_.back(), {Entry::Role::kUser, text});
}

void HttpAgent::open_helper(const Json& arguments) {
  const std::string session = fmt::format("helper-{}", ++helpers_);
  setup_.sink(
      "session_start", session,
      {{"session", session}, {"parent", stack_.back().session}, {"agent", name()}, {"model", setup_.model.model}});
  const auto task = base::require<std::string>(arguments, "task", "the call's arguments");
  setup_.sink("message", session, {{"role", "system"}, {"source", "helper_prompt"}, {"text", redactor_.redact(task)}});
  stack_.push_back({session, {}});
  add(stack_.back(), {Entry::Role::kUser, task});
}

/// Old results are taken out of a conversation that nears the model's limit; the newest stay.
void HttpAgent::forget_old_results(Conversation& conversation) {
  constexpr double kFullShare = 0.8;
  constexpr size_t kKept = 12, kShort = 400;
  if (static_cast<double>(last_input_) < kFullShare * static_cast<double>(setup_.model.context_tokens)) return;
  size_t left = 0, forgotten = 0;
  for (auto entry = conversation.entries.rbegin(); entry != conversation.entries.rend(); ++entry) {
    if (entry->role != Entry::Role::kTool || ++left <= kKept || entry->text.size() <= kShort) continue;
    entry->text = fmt::format("[{} characters of an earlier result were left out here]", entry->text.size());
    ++forgotten;
  }
  last_input_ = 0;
  if (forgotten > 0) setup_.sink("compaction", conversation.session, {{"results", forgotten}});
}

bool HttpAgent::ask_model() {
  Conversation& conversation = stack_.back();
  forget_old_results(conversation);
  const bool is_helper = stack_.size() > 1;
  const auto answer = client_.ask(is_helper ? kHelperSystem : kSystem, conversation.entries, tool_offers(is_helper));
  if (!answer) return false;
  take_answer(*answer);
  return true;
}

void HttpAgent::take_answer(const ModelAnswer& answer) {
  Conversation& conversation = stack_.back();
  const std::string& session = conversation.session;
  last_input_ = answer.usage.input() + answer.usage.output;
  Json usage = {{"id", fmt::format("{}-{}", session, conversation.entries.size())},
                {"input_tokens", answer.usage.fresh},
                {"cached_tokens", answer.usage.cached},
                {"cache_write_tokens", answer.usage.cache_write},
                {"output_tokens", answer.usage.output},
                {"reasoning_tokens", answer.usage.reasoning}};
  if (const auto cost = client_.cost(answer.usage)) usage["cost_usd"] = *cost;
  setup_.sink("usage", session, usage);
  if (!answer.text.empty())
    setup_.sink("message", session, {{"role", "agent"}, {"source", "text"}, {"text", redactor_.redact(answer.text)}});
  Entry entry{Entry::Role::kAgent, answer.text, answer.calls, answer.raw};
  // Calls of an answer that ran into its limit may be torn: they are not made.
  if (answer.is_cut_off) entry.calls.clear(), entry.raw = Json();
  if (entry.text.empty() && entry.calls.empty()) entry.text = "(nothing)";
  add(conversation, entry);
  if (answer.is_cut_off)
    add(conversation,
        {Entry::Role::kUser, "Your answer ran into its limit of length; its calls were not made. Go on."});
}

void HttpAgent::give_result(const ToolCall& call, const ToolOutcome& outcome) {
  Entry entry{Entry::Role::kTool, redactor_.redact(outcome.text)};
  entry.call_id = call.id;
  entry.is_error = outcome.is_error;
  setup_.sink("tool_result", stack_.back().session,
              {{"id", call.id}, {"text", entry.text}, {"bytes", entry.text.size()}, {"is_error", entry.is_error}});
  add(stack_.back(), std::move(entry));
}

/// The first open call: made here, or handed to the run as a step.
std::optional<AgentStep> HttpAgent::make_call(const ToolCall& call) {
  const Json arguments = Json::parse(call.arguments.empty() ? "{}" : call.arguments, nullptr, false);
  const trace::ToolUse use = classifier_.classify(call.name, arguments, setup_.tools.isolation.work.string());
  setup_.sink("tool_call", stack_.back().session,
              redactor_.redact(Json{{"id", call.id},
                                    {"tool", call.name},
                                    {"kind", use.kind},
                                    {"also", use.also},
                                    {"reads", use.reads},
                                    {"writes", use.writes},
                                    {"input", arguments.is_discarded() ? Json(call.arguments) : arguments}}));
  if (!arguments.is_object()) {
    give_result(call, {"the call's arguments are not a JSON object; nothing was done", true});
    return std::nullopt;
  }
  try {
    if (call.name == "evaluate" || call.name == "ask") {
      waits_for_ = call.name;
      AgentStep step{call.name == "ask" ? AgentStep::Kind::kAsk : AgentStep::Kind::kEvaluate,
                     redactor_.redact(base::value_or<std::string>(arguments, "changed", "as asked by the agent"))};
      step.filter = base::value_or<std::string>(arguments, "filter", "");
      step.check_only = base::value_or(arguments, "check_only", false);
      return step;
    }
    if (call.name == "helper" && stack_.size() == 1) {
      open_helper(arguments);
      return std::nullopt;
    }
    give_result(call, run_tool(setup_.tools, call.name, arguments));
  } catch (const nlohmann::json::exception& e) {
    waits_for_.clear();
    give_result(call, {fmt::format("an argument has the wrong type: {}", e.what()), true});
  } catch (const Error& e) {
    waits_for_.clear();
    give_result(call, {e.what(), true});
  }
  return std::nullopt;
}

/// The last answer called nothing: a helper reports, the main conversation claims.
std::optional<AgentStep> HttpAgent::end_conversation() {
  const std::string text = stack_.back().entries.back().text;
  if (stack_.size() > 1) {
    setup_.sink("session_end", stack_.back().session, {{"reason", "reported"}, {"is_error", false}});
    stack_.pop_back();
    give_result(stack_.back().open_calls().front(), {text, false});
    return std::nullopt;
  }
  must_speak_ = true;
  return AgentStep{AgentStep::Kind::kClaim, redactor_.redact(text), {"turn_ended"}};
}

std::optional<AgentStep> HttpAgent::work(const AgentContext& context) {
  setup_.tools.longest_s = std::max(1.0, context.minutes_left * 60);
  const auto open = stack_.back().open_calls();
  if (!open.empty()) return make_call(open.front());
  if (stack_.back().entries.back().role == Entry::Role::kAgent) return end_conversation();
  ask_model();
  return std::nullopt;
}

AgentStep HttpAgent::next(const AgentContext& context) {
  if (!has_begun_) begin_or_go_on(context);
  answer_run(context);
  take_messages(context);
  while (!setup_.should_stop())
    if (auto step = work(context)) return *step;
  return {AgentStep::Kind::kStop, "stopped"};
}

}  // namespace ks::agents
