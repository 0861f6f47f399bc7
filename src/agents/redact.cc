#include "agents/redact.h"

#include <algorithm>
#include <cctype>
#include <string_view>

extern char** environ;

namespace ks::agents {
namespace {

constexpr size_t kShortestSecret = 6;  ///< shorter values would hit ordinary text

/// Beginnings of well-known keys, with the least number of characters after them.
constexpr std::pair<std::string_view, size_t> kPrefixes[] = {
    {"sk-", 16},   {"ghp_", 20}, {"gho_", 20}, {"ghs_", 20}, {"github_pat_", 20}, {"glpat-", 16}, {"xoxb-", 16},
    {"xoxp-", 16}, {"AKIA", 16}, {"AIza", 30}, {"hf_", 20},  {"pypi-", 30},       {"nvapi-", 20}, {"Bearer ", 16}};

bool is_key_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

void hide_prefixed(std::string& text) {
  for (const auto& [prefix, least] : kPrefixes)
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
      if (at > 0 && is_key_character(text[at - 1]) && text[at - 1] != '.') continue;
      size_t end = at + prefix.size();
      while (end < text.size() && is_key_character(text[end])) ++end;
      if (end - at - prefix.size() >= least) text.replace(at, end - at, "[secret]");
    }
}

}  // namespace

bool is_secret_name(const std::string& name) {
  std::string upper;
  for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const char* word :
       {"API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE_KEY", "ACCESS_KEY"})
    if (upper.find(word) != std::string::npos) return true;
  return upper.size() >= 4 && upper.compare(upper.size() - 4, 4, "_KEY") == 0;
}

Redactor::Redactor() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string::npos && is_secret_name(text.substr(0, equals)))
      add(text.substr(0, equals), text.substr(equals + 1));
  }
}

void Redactor::add(const std::string& name, const std::string& value) {
  if (value.size() < kShortestSecret) return;
  secrets_.emplace_back(value, name);
  std::sort(secrets_.begin(), secrets_.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

std::string Redactor::redact(std::string text) const {
  for (const auto& [value, name] : secrets_)
    for (size_t at = text.find(value); at != std::string::npos; at = text.find(value, at)) {
      const std::string mark = "[secret " + name + "]";
      text.replace(at, value.size(), mark);
      at += mark.size();
    }
  hide_prefixed(text);
  return text;
}

Json Redactor::redact(const Json& json) const {
  if (json.is_string()) return redact(json.get<std::string>());
  if (json.is_array()) {
    Json result = Json::array();
    for (const Json& entry : json) result.push_back(redact(entry));
    return result;
  }
  if (!json.is_object()) return json;
  Json result = Json::object();
  for (const auto& [key, value] : json.items()) result[redact(key)] = redact(value);
  return result;
}

}  // namespace ks::agents
