// The built-in agent: a language model behind HTTP and a small loop. It sends the conversation, runs the tools that the
// answer calls, and sends their results, until an answer calls none: that is a claim, and the run's judge looks. An
// evaluation and a question are the run's to make: the loop hands them up as steps and goes on with their results.
//
//   prompt -> ask the model -> calls? -> shell, read, write, edit, profile, disassemble: behind the walls, at once
//                                     -> evaluate, ask: a step of the run
//                                     -> helper: a conversation of its own on top, its last words are the result
//                           -> none: a claim; the judge's answer is the next message
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agents/agent.h"
#include "agents/agent_tools.h"
#include "agents/conversation.h"
#include "agents/model_client.h"
#include "agents/redact.h"
#include "trace/tool_kinds.h"

namespace ks::agents {

struct HttpAgentSetup {
  ModelSpec model;
  HttpSend send;       ///< curl_send()
  std::string prompt;  ///< the first message
  ToolSetup tools;
  base::fs::path conversation;  ///< file that keeps it
  std::function<void(const std::string& kind, const std::string& session, const Json& body)> sink;
  std::function<bool()> should_stop;
};

class HttpAgent : public Agent {
 public:
  explicit HttpAgent(HttpAgentSetup setup);
  std::string name() const override { return "http"; }
  AgentStep next(const AgentContext& context) override;

 private:
  void begin_or_go_on(const AgentContext& context);
  void answer_run(const AgentContext& context);
  void take_messages(const AgentContext& context);
  std::optional<AgentStep> work(const AgentContext& context);
  std::optional<AgentStep> make_call(const ToolCall& call);
  std::optional<AgentStep> end_conversation();
  void open_helper(const Json& arguments);
  bool ask_model();
  void take_answer(const ModelAnswer& answer);
  void give_result(const ToolCall& call, const ToolOutcome& outcome);
  void add(Conversation& conversation, Entry entry);
  void forget_old_results(Conversation& conversation);
  void wait(double seconds) const;

  HttpAgentSetup setup_;
  Redactor redactor_;
  ConversationLog log_;
  ModelClient client_;
  trace::ToolClassifier classifier_;
  std::vector<Conversation> stack_;
  size_t messages_seen_ = 0;
  int helpers_ = 0;
  bool has_begun_ = false;
  bool must_speak_ = false;  ///< the main conversation's turn ended: the run's answer comes first
  std::string waits_for_;    ///< "evaluate" or "ask": the first open call, made by the run
  int64_t last_input_ = 0;   ///< tokens of the last request
};

}  // namespace ks::agents
