// The questioner `model`: an HTTP server that speaks OpenAI-compatible chat completions is shown the bank's best
// entries with their facts, and answers with one id of them, or "none". Nothing that a model writes reaches the agent:
// an answer that is not exactly one of the offered ids is refused, recorded and counted, and nothing is asked that
// time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "steering/bank.h"

namespace ks::steering {

/// Where the model is, from a task's [questioner_model].
struct ModelQuestioner {
  std::string url;      ///< up to but without "/chat/completions": "http://127.0.0.1:8080/v1"
  std::string name;     ///< of the model
  std::string key_env;  ///< environment variable that holds the key; "" none is sent
  double seconds = 60;  ///< for one answer
};

/// What a server answered.
struct HttpAnswer {
  int status = 0;  ///< 0: none; `body` then says why
  std::string body;
};

/// Sends a JSON body; `key` goes into the Authorization header where it is not empty.
using Post =
    std::function<HttpAnswer(const std::string& url, const std::string& key, const std::string& body, double seconds)>;

/// Over HTTP; redirections are not followed, and this machine itself is never reached through a proxy.
HttpAnswer post_json(const std::string& url, const std::string& key, const std::string& body, double seconds);

/// What came of asking a model.
struct ModelChoice {
  int index = -1;       ///< of the offered entry; -1: none
  std::string reply;    ///< what the model said, shortened
  std::string refused;  ///< why its answer is not taken; "" it is (an entry, or "none")
  int64_t tokens = 0;   ///< input and output, as the server counted
};

inline constexpr size_t kOffered = 8;

/// Throws ks::Error where the table of the task lacks something, or the key's variable is not set.
void check_model(const ModelQuestioner& model);

ModelChoice choose_by_model(const ModelQuestioner& model, const std::vector<Message>& offered, const Post& post);

/// The body of the `note` event about a choice.
Json note_of(const ModelChoice& choice, const std::vector<Message>& offered);

}  // namespace ks::steering
