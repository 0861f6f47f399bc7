#include "agents/model_wire.h"

namespace ks::agents {

std::unique_ptr<Wire> make_wire(const std::string& name, const std::string& origin) {
  if (name == "chat") return make_chat_wire();
  if (name == "responses") return make_responses_wire();
  if (name == "messages") return make_messages_wire();
  throw Error("{}: unknown \"wire\": \"{}\"; known: chat, responses, messages", origin, name);
}

namespace {

const Json& error_of(const Json& body) {
  static const Json kNone;
  if (!body.is_object()) return kNone;
  const auto found = body.find("error");
  return found == body.end() ? kNone : *found;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string provider_error(const Json& body) {
  const Json& error = error_of(body);
  if (error.is_string()) return error.get<std::string>();
  if (error.is_object()) {
    const std::string message = text_of(error, "message");
    return message.empty() ? base::to_line(error) : message;
  }
  return body.is_object() ? text_of(body, "message") : "";
}

bool is_passing_error(const Json& body) {
  const Json& error = error_of(body);
  const Json& where = error.is_object() ? error : body;
  if (!where.is_object()) return false;
  const std::string kinds = text_of(where, "type") + " " + text_of(where, "code");
  if (kinds.find("insufficient_quota") != std::string::npos) return false;  // waiting does not fill an account
  for (const char* word : {"overloaded", "rate_limit", "server_error", "api_error", "timeout", "unavailable"})
    if (kinds.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace ks::agents
