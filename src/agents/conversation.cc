#include "agents/conversation.h"

#include <algorithm>

namespace ks::agents {
namespace {

constexpr const char* kRoles[] = {"user", "agent", "tool"};

}  // namespace

Json to_json(const Entry& entry) {
  Json calls = Json::array();
  for (const auto& call : entry.calls)
    calls.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  return {{"role", kRoles[static_cast<int>(entry.role)]},
          {"text", entry.text},
          {"calls", std::move(calls)},
          {"raw", entry.raw},
          {"call_id", entry.call_id},
          {"is_error", entry.is_error}};
}

Entry entry_from_json(const Json& json) {
  Entry entry;
  const auto role = base::require<std::string>(json, "role", "the conversation");
  entry.role = role == "user" ? Entry::Role::kUser : role == "agent" ? Entry::Role::kAgent : Entry::Role::kTool;
  entry.text = base::value_or<std::string>(json, "text", "");
  for (const Json& call : base::value_or<Json>(json, "calls", Json::array()))
    entry.calls.push_back({call.value("id", ""), call.value("name", ""), call.value("arguments", "")});
  entry.raw = base::value_or<Json>(json, "raw", Json());
  entry.call_id = base::value_or<std::string>(json, "call_id", "");
  entry.is_error = base::value_or(json, "is_error", false);
  return entry;
}

std::vector<ToolCall> Conversation::open_calls() const {
  size_t last = entries.size();
  while (last > 0 && entries[last - 1].role == Entry::Role::kTool) --last;
  if (last == 0 || entries[last - 1].role != Entry::Role::kAgent) return {};
  const auto& calls = entries[last - 1].calls;
  // Results are given in the order of the calls; models have been seen to repeat an id.
  const size_t answered = std::min(entries.size() - last, calls.size());
  return {calls.begin() + static_cast<ptrdiff_t>(answered), calls.end()};
}

ConversationLog::ConversationLog(base::fs::path file) : file_(std::move(file)) {
  if (!base::fs::exists(file_)) return;
  std::string whole;
  for (const auto& line : base::read_lines(file_)) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;  // torn by a kill; the next one is whole again
    whole += line + "\n";
    const auto session = json.value("session", "main");
    if (all_.count(session) == 0) order_.push_back(session);
    all_[session].push_back(entry_from_json(json.value("entry", Json::object())));
    messages_seen_ = json.value("messages_seen", messages_seen_);
  }
  if (whole != base::read_file(file_)) base::write_file_atomically(file_, whole);
}

std::vector<Conversation> ConversationLog::take_stack() const {
  std::vector<Conversation> stack;
  for (const auto& session : order_) {
    Conversation conversation{session, all_.at(session)};
    // A helper is at work where the conversation before it waits for one, and nobody else has taken that place.
    const auto open = stack.empty() ? std::vector<ToolCall>() : stack.back().open_calls();
    const bool waits = !open.empty() && open.front().name == "helper";
    if (stack.empty() || (waits && session == order_.back())) stack.push_back(std::move(conversation));
  }
  return stack;
}

void ConversationLog::add(const std::string& session, const Entry& entry, size_t messages_seen) {
  if (all_.count(session) == 0) order_.push_back(session);
  all_[session].push_back(entry);
  messages_seen_ = messages_seen;
  base::append_line(
      file_, base::to_line({{"session", session}, {"messages_seen", messages_seen}, {"entry", to_json(entry)}}), false);
}

}  // namespace ks::agents
