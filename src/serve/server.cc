#include "serve/server.h"

#include <httplib.h>

#include "base/hash.h"

namespace ks::serve {
namespace {

constexpr size_t kMostBody = 256 * 1024;
constexpr int kMostWatchers = 64;  ///< each open page holds a thread
constexpr double kHeartbeatS = 10;

std::string fresh_token() {
  return base::sha256_hex(fmt::format("{:x}{:x}{:x}", base::secret_seed(), base::secret_seed(), base::secret_seed()))
      .substr(0, 32);
}

/// Equal or not in a time that does not tell where they differ.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

void refuse(httplib::Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(base::to_line(Json{{"error", why}}), "application/json");
}

}  // namespace

struct Server::State {
  State(const base::fs::path& run, ServerOptions options)
      : live(run, std::move(options.suggest)), token(options.token.empty() ? fresh_token() : options.token) {}

  LiveRun live;
  std::string token;
  int port = 0;
  httplib::Server http;

  bool admits(const httplib::Request& request, httplib::Response& response) const;
  void add_routes();
  void stream(httplib::Response& response);
  void pass_on(const std::string& what, const httplib::Request& request, httplib::Response& response);
};

bool Server::State::admits(const httplib::Request& request, httplib::Response& response) const {
  const std::string number = fmt::format(":{}", port), host = request.get_header_value("Host");
  if (host != "127.0.0.1" + number && host != "localhost" + number)
    return refuse(response, 403, "this server answers to 127.0.0.1 alone"), false;
  const std::string origin = request.get_header_value("Origin");
  if (!origin.empty() && origin != "http://" + host)
    return refuse(response, 403, "requests from other origins are refused"), false;
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  const bool opened = request.method == "GET" && request.path == "/";
  if (site == "cross-site" && !opened) return refuse(response, 403, "requests from other sites are refused"), false;
  if (!same_secret(request.get_param_value("token"), token))
    return refuse(response, 403, "the token is missing or wrong; open the address that kernelseek serve printed"),
           false;
  return true;
}

void Server::State::stream(httplib::Response& response) {
  response.set_header("Cache-Control", "no-store");
  auto seen = std::make_shared<int64_t>(0);
  auto shown = std::make_shared<std::shared_ptr<const std::string>>();
  response.set_chunked_content_provider("text/event-stream", [this, seen, shown](size_t, httplib::DataSink& sink) {
    const auto view = live.wait(*seen, kHeartbeatS);
    std::string text = view.version == *seen ? ": still here\n\n" : "event: status\ndata: " + view.status + "\n\n";
    if (view.page != *shown) text += "event: page\ndata: " + *view.page + "\n\n";
    *seen = view.version;
    *shown = view.page;
    return sink.write(text.data(), text.size()) && http.is_running();
  });
}

void Server::State::pass_on(const std::string& what, const httplib::Request& request, httplib::Response& response) {
  try {
    Json message = {{"do", what}};
    if (what == "say") {
      const Json body = base::parse_json(request.body, "the request");
      message["text"] = base::require<std::string>(body, "text", "the request");
    }
    live.ask_run(message);
    const std::string said = what == "say"        ? "sent: the agent gets it when it next comes back"
                             : what == "stop"     ? "the run stops"
                             : what == "pause"    ? "paused"
                             : what == "continue" ? "the run goes on without a question"
                                                  : "resumed";
    response.set_content(base::to_line(Json{{"said", said}}), "application/json");
  } catch (const Error& error) {
    refuse(response, 409, error.what());
  }
}

void Server::State::add_routes() {
  // Not SO_REUSEPORT, httplib's default: two servers on one port would share out each other's requests.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  http.set_payload_max_length(kMostBody);
  http.new_task_queue = [] { return new httplib::ThreadPool(kMostWatchers); };
  http.set_default_headers(
      {{"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}});
  http.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    return admits(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                     : httplib::Server::HandlerResponse::Handled;
  });
  http.Get("/", [this](const httplib::Request&, httplib::Response& response) {
    response.set_header("Cache-Control", "no-store");
    response.set_content(live.html(token), "text/html; charset=utf-8");
  });
  http.Get("/events", [this](const httplib::Request&, httplib::Response& response) { stream(response); });
  for (const std::string what : {"say", "pause", "resume", "stop", "continue"})
    http.Post("/" + what, [this, what](const httplib::Request& request, httplib::Response& response) {
      pass_on(what, request, response);
    });
}

Server::Server(const base::fs::path& run, ServerOptions options) {
  const int wanted = options.port;
  state_ = std::make_unique<State>(run, std::move(options));
  state_->add_routes();
  if (wanted == 0) {
    state_->port = state_->http.bind_to_any_port("127.0.0.1");
  } else if (state_->http.bind_to_port("127.0.0.1", wanted)) {
    state_->port = wanted;
  }
  if (state_->port <= 0)
    throw Error("port {} of 127.0.0.1 cannot be had: another program uses it; choose another with --port", wanted);
}

Server::~Server() {
  stop();
}

std::string Server::address() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", state_->port, state_->token);
}
int Server::port() const {
  return state_->port;
}
const std::string& Server::token() const {
  return state_->token;
}
void Server::serve() {
  state_->http.listen_after_bind();
}

void Server::stop() {
  state_->live.close();
  state_->http.stop();
}

}  // namespace ks::serve
