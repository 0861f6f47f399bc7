#include "agents/model_client.h"

#include <algorithm>
#include <cmath>

#include "agents/event_stream.h"

namespace ks::agents {

/// Why an attempt gave no answer.
struct ModelClient::Failure {
  std::string text;
  bool may_retry = false, is_rate_limit = false, was_stopped = false;
  double retry_after_s = 0;
};

ModelClient::ModelClient(Setup setup)
    : setup_(std::move(setup)), wire_(make_wire(setup_.spec.wire, setup_.spec.file)) {}

std::optional<double> ModelClient::cost(const TokenUsage& usage) const {
  const auto& price = setup_.spec.price;
  if (!price) return std::nullopt;
  constexpr double kMillion = 1e6;
  return (static_cast<double>(usage.fresh) * price->input + static_cast<double>(usage.cached) * price->cached +
          static_cast<double>(usage.cache_write) * price->cache_write +
          static_cast<double>(usage.output) * price->output) /
         kMillion;
}

namespace {

/// 408 and 409 pass, 425 is "too early", 5xx are the server's.
bool is_passing_status(int status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

}  // namespace

std::optional<ModelAnswer> ModelClient::try_once(const HttpRequest& request, Failure& failure) {
  const auto reader = wire_->reader();
  EventStream stream([&](const std::string& name, const std::string& data) { reader->event(name, data); });
  std::string head;  // of an answer that is no stream
  constexpr size_t kHead = 4096;
  const HttpAnswer http = setup_.send(request, [&](std::string_view bytes) {
    if (head.size() < kHead) head.append(bytes.substr(0, kHead - head.size()));
    stream.feed(bytes);
  });
  failure = {};
  failure.retry_after_s = http.retry_after_s;
  if (http.was_stopped) {
    failure.was_stopped = true;
    return std::nullopt;
  }
  if (http.status == 200) {
    ModelAnswer answer = reader->finish();
    if (answer.is_whole) return answer;
    if (!answer.error.empty()) {
      failure.text = answer.error;
      failure.may_retry = answer.may_retry;
      return std::nullopt;
    }
    const std::string said = provider_error(Json::parse(head, nullptr, false));
    failure.text = !said.empty()          ? said
                   : http.failure.empty() ? "the stream ended before the answer was whole"
                                          : http.failure;
    failure.may_retry = said.empty();
    return std::nullopt;
  }
  const Json body = Json::parse(http.body, nullptr, false);
  const std::string said = provider_error(body);
  failure.text =
      http.status == 0 ? http.failure : fmt::format("HTTP {}{}{}", http.status, said.empty() ? "" : ": ", said);
  failure.is_rate_limit = http.status == 429 || http.status == 529 || http.status == 503;
  failure.may_retry = http.status == 0 || is_passing_status(http.status);
  if (http.status == 429 && !is_passing_error(body) && failure.text.find("quota") != std::string::npos)
    failure.may_retry = failure.is_rate_limit = false;  // an account that is empty stays empty
  return std::nullopt;
}

std::optional<ModelAnswer> ModelClient::ask(const std::string& system, const std::vector<Entry>& entries,
                                            const std::vector<ToolOffer>& tools) {
  HttpRequest request;
  request.url = setup_.spec.url + wire_->path();
  request.headers = wire_->headers(setup_.spec);
  request.body = base::to_line(wire_->request(setup_.spec, system, entries, tools));
  request.silence_s = setup_.spec.silence_s;
  request.should_stop = setup_.should_stop;
  constexpr double kLongestWait_s = 60;
  double waited_s = 0;
  for (int attempt = 1, limited = 0; !setup_.should_stop();) {
    Failure failure;
    if (auto answer = try_once(request, failure)) return answer;
    if (failure.was_stopped) break;
    const bool patient = failure.is_rate_limit && waited_s < setup_.spec.rate_limit_minutes * 60;
    if (!failure.may_retry || (!patient && attempt >= setup_.spec.attempts))
      throw Error("{} ({}): {}{}", setup_.spec.provider, setup_.spec.model, failure.text,
                  failure.may_retry ? fmt::format(", {} attempts", attempt + limited) : "");
    const int turn = failure.is_rate_limit ? limited++ : attempt++ - 1;
    const double own = std::min(setup_.spec.first_wait_s * std::pow(2.0, std::min(turn, 10)), kLongestWait_s);
    const double seconds = failure.retry_after_s > 0 ? failure.retry_after_s : own;
    if (failure.is_rate_limit) waited_s += seconds;
    setup_.note(failure.is_rate_limit ? "rate_limit" : "retry",
                fmt::format("{}; trying again in {:.1f} s", failure.text, seconds));
    setup_.wait(seconds);
  }
  return std::nullopt;
}

}  // namespace ks::agents
