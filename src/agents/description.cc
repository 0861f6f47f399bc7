#include "agents/description.h"

#include <algorithm>

#include "base/toml.h"

namespace ks::agents {
namespace {

const std::vector<std::string> kKeys = {"name",
                                        "program",
                                        "tested",
                                        "version",
                                        "start",
                                        "resume",
                                        "model_option",
                                        "endpoint",
                                        "endpoint_option",
                                        "failed_text",
                                        "credentials",
                                        "home_files",
                                        "session_from",
                                        "events",
                                        "finished",
                                        "failed",
                                        "rate_limit",
                                        "transcripts",
                                        "environment",
                                        "settings",
                                        "usage",
                                        "unset",
                                        "set",
                                        "needs_text",
                                        "message_on_stdin",
                                        "evaluate_after_turn",
                                        "trajectory"};

LineMatch match_of(const Json& values, const char* key, const std::string& where) {
  LineMatch match;
  const auto found = values.find(key);
  if (found == values.end()) return match;
  match.type = base::require<std::string>(*found, "type", where);
  match.key = base::value_or<std::string>(*found, "key", "");
  match.value = found->value("value", Json());
  return match;
}

std::vector<std::string> list(const Json& values, const char* key) {
  return base::value_or<std::vector<std::string>>(values, key, {});
}

}  // namespace

bool LineMatch::matches(const Json& line) const {
  if (type.empty() || !line.is_object() || base::value_or<std::string>(line, "type", "") != type) return false;
  return value.is_null() || (line.contains(key) && line.at(key) == value);
}

Description read_description(const base::fs::path& path) {
  const auto file = base::read_toml_file(path.string());
  const Json& values = file.values;
  for (const auto& [key, value] : values.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    const std::string near = base::nearest_word(key, kKeys);
    throw Error("{}: unknown key \"{}\"{}", file.where(key), key,
                near.empty() ? "" : "; did you mean \"" + near + "\"?");
  }
  Description result;
  try {
    result.file = path.string();
    result.name = base::require<std::string>(values, "name", path.string());
    result.program = base::value_or<std::string>(values, "program", "");
    result.tested = base::require<std::string>(values, "tested", path.string());
    result.version = list(values, "version");
    result.start = base::require<std::vector<std::string>>(values, "start", path.string());
    result.resume = list(values, "resume");
    result.model_option = list(values, "model_option");
    result.endpoint = base::value_or<std::string>(values, "endpoint", "");
    result.endpoint_option = list(values, "endpoint_option");
    result.failed_text = list(values, "failed_text");
    result.session_from = match_of(values, "session_from", path.string());
    result.session_key = std::exchange(result.session_from.key, "");
    result.finished = match_of(values, "finished", path.string());
    result.failed = match_of(values, "failed", path.string());
    result.events = base::require<std::string>(values, "events", path.string());
    result.trajectory = base::value_or<std::string>(values, "trajectory", "");
    result.needs_text = base::value_or(values, "needs_text", false);
    result.message_on_stdin = base::value_or(values, "message_on_stdin", false);
    result.evaluate_after_turn = base::value_or(values, "evaluate_after_turn", false);
    result.usage_is_cumulative = base::value_or<std::string>(values, "usage", "") == "cumulative";
    result.rate_limit = list(values, "rate_limit");
    result.transcripts = list(values, "transcripts");
    result.credentials = list(values, "credentials");
    result.home_files = base::value_or<std::map<std::string, std::string>>(values, "home_files", {});
    result.environment = list(values, "environment");
    result.unset = list(values, "unset");
    result.set = base::value_or<std::map<std::string, std::string>>(values, "set", {});
    result.settings = base::value_or<std::string>(values, "settings", "");
  } catch (const nlohmann::json::exception& e) {
    throw Error("{}: a key has the wrong type: {}", path.string(), e.what());
  }
  if (result.start.empty()) throw Error("{}: \"start\" names no program", file.where("start"));
  for (const auto& [file_name, content] : result.home_files)
    if (file_name.empty() || file_name.front() == '/' || file_name.find("..") != std::string::npos)
      throw Error("{}: \"{}\" must lie under HOME", file.where("home_files"), file_name);
  if (result.tested != "live" && result.tested != "recorded")
    throw Error("{}: \"tested\" must be \"live\" or \"recorded\"", file.where("tested"));
  return result;
}

std::map<std::string, Description> all_descriptions() {
  std::map<std::string, Description> result;
  for (const auto& entry : base::fs::directory_iterator(base::project_root() / "data" / "agents")) {
    if (entry.path().extension() != ".toml") continue;
    Description description = read_description(entry.path());
    const std::string name = description.name;
    if (result.count(name) != 0)
      throw Error("{}: the name \"{}\" is already used in {}", description.file, name, result.at(name).file);
    result.emplace(name, std::move(description));
  }
  return result;
}

Description find_description(const std::string& name) {
  const auto all = all_descriptions();
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  std::vector<std::string> names = {"tuner", "http"};
  for (const auto& [known, description] : all) names.push_back(known);
  const std::string near = base::nearest_word(name, names);
  throw Error("unknown agent \"{}\"{}; known: {}", name, near.empty() ? "" : " (did you mean \"" + near + "\"?)",
              fmt::join(names, ", "));
}

std::string filled(std::string text, const std::map<std::string, std::string>& values) {
  for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at)) {
    const size_t end = text.find('}', at);
    if (end == std::string::npos) break;
    const auto value = values.find(text.substr(at + 1, end - at - 1));
    if (value == values.end()) {
      ++at;
      continue;
    }
    text.replace(at, end - at + 1, value->second);
    at += value->second.size();  // what was put in is not looked at again
  }
  return text;
}

std::vector<std::string> filled(const std::vector<std::string>& words,
                                const std::map<std::string, std::string>& values) {
  std::vector<std::string> result;
  for (const auto& word : words) result.push_back(filled(word, values));
  return result;
}

}  // namespace ks::agents
