// The built-in agent's conversations, the main one and its helpers', kept in one append-only file of JSON lines so that
// a killed run goes on where it was. A call is written down before it is made and its result after: a call without a
// result was cut off by the end of the process, is answered so, and is never made a second time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agents/model_wire.h"
#include "base/file.h"

namespace ks::agents {

/// One conversation.
struct Conversation {
  std::string session;  ///< "main", "helper-1" …
  std::vector<Entry> entries;
  /// Calls of the last answer that have no result yet, in order.
  std::vector<ToolCall> open_calls() const;
};

class ConversationLog {
 public:
  /// Reads what is there; a torn last line is left out.
  explicit ConversationLog(base::fs::path file);

  /// The conversations at work, the main one first; each further one is the helper that the one before waits for.
  std::vector<Conversation> take_stack() const;
  /// How many helpers there have been.
  int helpers() const { return static_cast<int>(all_.size()) - static_cast<int>(all_.count("main")); }
  /// How many of the run's messages the main conversation holds.
  size_t messages_seen() const { return messages_seen_; }

  /// Adds an entry of `session`; `messages_seen` goes with it.
  void add(const std::string& session, const Entry& entry, size_t messages_seen);

 private:
  base::fs::path file_;
  std::map<std::string, std::vector<Entry>> all_;
  std::vector<std::string> order_;
  size_t messages_seen_ = 0;
};

Json to_json(const Entry& entry);
Entry entry_from_json(const Json& json);

}  // namespace ks::agents
