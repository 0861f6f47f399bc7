// One HTTP request whose answer is used as it arrives. The real one is libcurl; tests hand in their own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ks::agents {

struct HttpRequest {
  std::string url, body;
  std::vector<std::pair<std::string, std::string>> headers;
  double silence_s = 600;             ///< gives up after this long without a byte
  std::function<bool()> should_stop;  ///< asked now and then
};

struct HttpAnswer {
  int status = 0;            ///< 0: no answer came
  std::string body;          ///< of answers other than 200
  double retry_after_s = 0;  ///< what the server asks for; 0: nothing
  std::string failure;       ///< why there is no answer, or why it ended early; "" it ended by itself
  bool was_stopped = false;
};

/// Sends the request; the bytes of an answer 200 go to `use`.
using HttpSend = std::function<HttpAnswer(const HttpRequest&, const std::function<void(std::string_view)>& use)>;

HttpSend curl_send();

}  // namespace ks::agents
