// How a conversation with a language model goes over the wire, in three dialects: OpenAI Chat Completions, OpenAI
// Responses, Anthropic Messages; always streamed. A Wire writes requests; an AnswerReader takes the events of the
// stream and says whether the answer is whole: only a whole one may be acted on, so that a stream that was cut never
// makes a tool run, and the same request can be sent again.
//
// Token counts are brought to one convention: fresh input, cached input, cache writes, output with reasoning in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agents/model_spec.h"
#include "base/json.h"

namespace ks::agents {

/// A tool as it is offered to a model.
struct ToolOffer {
  std::string name, description;
  Json parameters;  ///< JSON schema of an object
};

/// A call that a model makes.
struct ToolCall {
  std::string id, name;
  std::string arguments;  ///< JSON text, as the model wrote it
};

/// One entry of a conversation.
struct Entry {
  enum class Role { kUser, kAgent, kTool };
  Role role = Role::kUser;
  std::string text;             ///< for a tool: its result
  std::vector<ToolCall> calls;  ///< of the agent
  Json raw;                     ///< the agent's answer in the wire's own form, given back as it came; null: none
  std::string call_id;          ///< tool: which call this answers
  bool is_error = false;        ///< tool
};

struct TokenUsage {
  int64_t fresh = 0, cached = 0, cache_write = 0, output = 0, reasoning = 0;
  int64_t input() const { return fresh + cached + cache_write; }
};

/// What a model answered.
struct ModelAnswer {
  std::string id, text;
  std::vector<ToolCall> calls;
  Json raw;  ///< see Entry::raw
  TokenUsage usage;
  bool is_whole = false;    ///< the stream said that it is complete
  bool is_cut_off = false;  ///< whole, but the model reached its limit of output: its calls may be torn
  std::string error;        ///< the provider's words, where the stream carries an error
  bool may_retry = false;   ///< and it is one that passes
};

/// Takes the events of one stream.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  /// `name` is empty where the dialect has none. Events that are not understood are passed over.
  virtual void event(const std::string& name, const std::string& data) = 0;
  /// The stream is over; the answer so far.
  virtual ModelAnswer finish() = 0;
};

/// A dialect.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual std::string path() const = 0;  ///< after the provider's URL
  virtual std::vector<std::pair<std::string, std::string>> headers(const ModelSpec& spec) const = 0;
  virtual Json request(const ModelSpec& spec, const std::string& system, const std::vector<Entry>& entries,
                       const std::vector<ToolOffer>& tools) const = 0;
  virtual std::unique_ptr<AnswerReader> reader() const = 0;
};

std::unique_ptr<Wire> make_chat_wire();
std::unique_ptr<Wire> make_responses_wire();
std::unique_ptr<Wire> make_messages_wire();

/// "chat", "responses" or "messages"; throws ks::Error naming `origin` for anything else.
std::unique_ptr<Wire> make_wire(const std::string& name, const std::string& origin);

/// The message of a provider's error object, whatever its form; "" where there is none.
std::string provider_error(const Json& body);

/// True for kinds of errors that pass by themselves: overloaded, rate limit, a server's failure.
bool is_passing_error(const Json& body);

}  // namespace ks::agents
