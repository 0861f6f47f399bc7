#include "agents/http_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <memory>

#include "base/error.h"

namespace ks::agents {
namespace {

/// What the callbacks of one transfer share.
struct Transfer {
  CURL* handle = nullptr;
  const HttpRequest* request = nullptr;
  const std::function<void(std::string_view)>* use = nullptr;
  HttpAnswer answer;
  std::exception_ptr thrown;  ///< nothing may be thrown through the library
};

size_t take_bytes(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  constexpr size_t kMostErrorBody = 256 * 1024;
  long status = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  const std::string_view bytes(data, size * count);
  try {
    if (status == 200)
      (*transfer.use)(bytes);
    else if (transfer.answer.body.size() < kMostErrorBody)
      transfer.answer.body.append(bytes);
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;
  }
  return bytes.size();
}

size_t take_header(char* data, size_t size, size_t count, void* user) {
  std::string line(data, size * count);
  std::transform(line.begin(), line.end(), line.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string name = "retry-after:";
  // The other form, a date, is rare among these servers: then our own waiting times count.
  if (line.rfind(name, 0) == 0)
    static_cast<Transfer*>(user)->answer.retry_after_s = std::max(0.0, std::atof(line.c_str() + name.size()));
  return size * count;
}

int look_for_stop(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.request->should_stop && transfer.request->should_stop()) transfer.answer.was_stopped = true;
  return transfer.answer.was_stopped ? 1 : 0;
}

HttpAnswer send(const HttpRequest& request, const std::function<void(std::string_view)>& use) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  KS_CHECK(started == CURLE_OK, "the HTTP library starts");
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(curl_easy_init(), curl_easy_cleanup);
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  list = curl_slist_append(list, "Accept: text/event-stream");
  list = curl_slist_append(list, "Expect:");
  for (const auto& [name, value] : request.headers) list = curl_slist_append(list, (name + ": " + value).c_str());
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(list, curl_slist_free_all);
  Transfer transfer{handle.get(), &request, &use, {}, nullptr};
  CURL* curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "127.0.0.1,localhost,::1");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_for_stop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
  // Redirects are not followed: they would carry the key to another host.
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(request.silence_s)));
  const CURLcode code = curl_easy_perform(curl);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  transfer.answer.status = static_cast<int>(status);
  if (code != CURLE_OK && !transfer.answer.was_stopped) transfer.answer.failure = curl_easy_strerror(code);
  return transfer.answer;
}

}  // namespace

HttpSend curl_send() {
  return send;
}

}  // namespace ks::agents
