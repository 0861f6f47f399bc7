// A Unix socket in a run's folder that takes JSON lines from several clients at once; who asked is answered by number.
// Bad lines are answered with an error and never end the server. Long folder names are no matter: the socket is bound
// and reached through its folder's descriptor.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/json.h"

namespace ks::agents {

class RequestSocket {
 public:
  /// Listens; a socket that a killed run left behind is replaced.
  explicit RequestSocket(const base::fs::path& path);
  ~RequestSocket();
  RequestSocket(const RequestSocket&) = delete;
  RequestSocket& operator=(const RequestSocket&) = delete;

  struct Request {
    int connection = 0;
    Json body;
  };
  /// The next request, waiting at most timeout_s.
  std::optional<Request> next(double timeout_s);
  /// Answers; false if the client is gone.
  bool reply(int connection, const Json& body);
  /// True while the client of a request is connected.
  bool is_connected(int connection) const { return clients_.count(connection) != 0; }
  const base::fs::path& path() const { return path_; }

 private:
  struct Client {
    int fd = -1;
    std::string pending;
  };
  std::optional<Request> buffered();
  void read_from(int connection);
  void drop(int connection);
  base::fs::path path_;
  int fd_ = -1;
  int next_connection_ = 1;
  std::map<int, Client> clients_;
};

/// Connects to such a socket. Throws ks::Error where nobody listens.
int connect_socket(const base::fs::path& path);

/// One request to the run whose socket this is, from a program inside it; waits for the answer. Throws ks::Error where
/// nobody answers or the answer is an error.
Json request_run(const base::fs::path& socket, const Json& request);

/// The socket of the run that this process works in ($KERNELSEEK_RUN_SOCKET); "" where there is none.
std::string run_socket();

}  // namespace ks::agents
