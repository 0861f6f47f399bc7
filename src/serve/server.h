// The report page, live, over HTTP on loopback. Whoever opens it needs the token that its address carries; requests for
// another host, from another origin or without the token are refused, so that neither another user's browser tab nor a
// web page that guesses the port can read or steer a run.
//
// | request | answer |
// |---|---|
// | GET /?token=… | the page |
// | GET /events?token=… | server-sent events: `page` (kernelseek.page/1) and `status`, at each change |
// | POST /say {"text"}, /continue, /pause, /resume, /stop | passed on to the run's control socket |
#pragma once

#include <memory>
#include <string>

#include "serve/live_run.h"

namespace ks::serve {

struct ServerOptions {
  int port = 0;       ///< 0: any free one
  Suggest suggest;    ///< the bank's best questions, shown beside the box
  std::string token;  ///< empty: a fresh secret one
};

class Server {
 public:
  /// Binds; throws ks::Error where the port is taken or the folder is no run.
  Server(const base::fs::path& run, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "http://127.0.0.1:PORT/?token=…"
  std::string address() const;
  int port() const;
  const std::string& token() const;
  /// Serves until stop() is called from elsewhere.
  void serve();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ks::serve
