#include "steering/model_questioner.h"

#include <cstdlib>

#include "agents/http_transport.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace ks::steering {
namespace {

constexpr size_t kMostAnswer = 1u << 20, kReplyShown = 200;

const char* const kRole =
    "You steer a programmer who makes a kernel faster. You may not write to the programmer. You are shown entries, "
    "each with facts and a question. Answer with the id of the one entry whose question the facts call for most, or "
    "with the word none. Write the id alone, nothing before or after it.";

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string request_body(const ModelQuestioner& model, const std::vector<Message>& offered) {
  Json entries = Json::array();
  for (const auto& message : offered)
    entries.push_back({{"id", message.id}, {"facts", message.facts}, {"question", message.question}});
  return base::to_line(
      Json{{"model", model.name},
           {"temperature", 0},
           {"messages",
            {{{"role", "system"}, {"content", kRole}}, {{"role", "user"}, {"content", base::to_line(entries)}}}}});
}

/// The words of an answer; throws ks::Error where it holds none.
std::string content_of(const HttpAnswer& answer, int64_t& tokens) {
  if (answer.status == 0) throw Error("no answer: {}", answer.body);
  if (answer.status != 200) throw Error("the server answered {}", answer.status);
  const Json json = base::parse_json(answer.body, "the answer");
  try {
    if (json.contains("usage") && json["usage"].is_object())
      tokens = base::value_or<int64_t>(json["usage"], "total_tokens", 0);
    return json.at("choices").at(0).at("message").at("content").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    throw Error("the answer has no choices[0].message.content");
  }
}

}  // namespace

HttpAnswer post_json(const std::string& url, const std::string& key, const std::string& body, double seconds) {
  agents::HttpRequest request{.url = url, .body = body, .headers = {}, .silence_s = seconds, .should_stop = {}};
  if (!key.empty()) request.headers.emplace_back("Authorization", "Bearer " + key);
  const int64_t end = base::monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
  request.should_stop = [end] { return base::monotonic_ns() > end; };
  HttpAnswer answer;
  const auto got = agents::curl_send()(request, [&](std::string_view bytes) {
    if (answer.body.size() + bytes.size() > kMostAnswer) throw Error("the answer is longer than {} bytes", kMostAnswer);
    answer.body += bytes;
  });
  if (got.was_stopped) return {0, fmt::format("nothing within {} s", seconds)};
  if (!got.failure.empty()) return {0, got.failure};
  answer.status = got.status;
  return answer;
}

void check_model(const ModelQuestioner& model) {
  if (model.url.empty() || model.name.empty())
    throw Error(
        "questioner \"model\" needs a table [questioner_model] in the task, with url (\"http://127.0.0.1:8080/v1\") "
        "and name");
  if (!model.url.starts_with("http://") && !model.url.starts_with("https://"))
    throw Error("questioner_model.url must begin with http:// or https://, not \"{}\"", model.url);
  if (model.seconds <= 0) throw Error("questioner_model.seconds must be above 0");
  if (!model.key_env.empty() && std::getenv(model.key_env.c_str()) == nullptr)
    throw Error("questioner_model.key_env names {}, which is not set in the environment", model.key_env);
}

ModelChoice choose_by_model(const ModelQuestioner& model, const std::vector<Message>& offered, const Post& post) {
  ModelChoice choice;
  const char* key = model.key_env.empty() ? nullptr : std::getenv(model.key_env.c_str());
  std::string url = model.url;
  while (!url.empty() && url.back() == '/') url.pop_back();
  try {
    const auto answer =
        post(url + "/chat/completions", key == nullptr ? "" : key, request_body(model, offered), model.seconds);
    const std::string reply = trimmed(content_of(answer, choice.tokens));
    choice.reply = reply.substr(0, kReplyShown);
    if (reply == "none") return choice;
    for (size_t i = 0; i < offered.size(); ++i)
      if (reply == offered[i].id) choice.index = static_cast<int>(i);
    if (choice.index < 0) choice.refused = "it is none of the offered ids";
  } catch (const Error& e) {
    choice.refused = e.what();
  }
  return choice;
}

Json note_of(const ModelChoice& choice, const std::vector<Message>& offered) {
  Json ids = Json::array();
  for (const auto& message : offered) ids.push_back(message.id);
  return {{"what", choice.refused.empty() ? "model_chose" : "model_refused"},
          {"text", choice.refused.empty() ? "the model chose " + choice.reply : "refused: " + choice.refused},
          {"reply", choice.reply},
          {"offered", ids},
          {"tokens", choice.tokens}};
}

}  // namespace ks::steering
