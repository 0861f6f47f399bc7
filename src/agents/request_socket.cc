#include "agents/request_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/subprocess.h"

namespace ks::agents {
namespace {

constexpr size_t kMostLine = 4u << 20;
constexpr size_t kMostClients = 64;

/// The address of a socket by way of its folder, which keeps it short; `folder_fd` must stay open while it is used.
sockaddr_un address_of(const base::fs::path& path, int& folder_fd) {
  folder_fd = ::open(path.parent_path().empty() ? "." : path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd < 0) throw Error("{}: {}", path.parent_path().string(), std::strerror(errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("/proc/self/fd/{}/{}", folder_fd, path.filename().string());
  KS_CHECK(name.size() < sizeof address.sun_path, "a socket's file name is short");
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  return address;
}

}  // namespace

RequestSocket::RequestSocket(const base::fs::path& path) : path_(path) {
  std::error_code ignored;
  base::fs::remove(path, ignored);
  int folder_fd = -1;
  const sockaddr_un address = address_of(path, folder_fd);
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool ok = fd_ >= 0 && ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                  ::listen(fd_, 16) == 0;
  const int why = errno;
  ::close(folder_fd);
  if (ok) return;
  if (fd_ >= 0) ::close(fd_);
  throw Error("{}: cannot listen: {}", path.string(), std::strerror(why));
}

RequestSocket::~RequestSocket() {
  while (!clients_.empty()) drop(clients_.begin()->first);
  ::close(fd_);
  std::error_code ignored;
  base::fs::remove(path_, ignored);
}

void RequestSocket::drop(int connection) {
  ::close(clients_.at(connection).fd);
  clients_.erase(connection);
}

std::optional<RequestSocket::Request> RequestSocket::buffered() {
  for (auto& [connection, client] : clients_) {
    const size_t end = client.pending.find('\n');
    if (end == std::string::npos) continue;
    const std::string line = client.pending.substr(0, end);
    client.pending.erase(0, end + 1);
    try {
      Json body = base::parse_json(line, "request");
      if (!body.is_object()) throw Error("a request is an object: {{\"do\": …}}");
      return Request{connection, std::move(body)};
    } catch (const std::exception& e) {
      reply(connection, {{"ok", false}, {"error", e.what()}});
      return buffered();
    }
  }
  return std::nullopt;
}

void RequestSocket::read_from(int connection) {
  Client& client = clients_.at(connection);
  char buffer[65536];
  const ssize_t got = ::read(client.fd, buffer, sizeof buffer);
  if (got > 0) client.pending.append(buffer, static_cast<size_t>(got));
  const bool has_ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  const bool is_flood = client.pending.size() > kMostLine && client.pending.find('\n') == std::string::npos;
  // A client that sent a line and closed its side is still answered if its line is whole.
  if (is_flood || (has_ended && client.pending.find('\n') == std::string::npos)) drop(connection);
}

std::optional<RequestSocket::Request> RequestSocket::next(double timeout_s) {
  if (auto request = buffered()) return request;
  std::vector<pollfd> polls = {{fd_, POLLIN, 0}};
  std::vector<int> connections = {0};
  for (const auto& [connection, client] : clients_) {
    polls.push_back({client.fd, POLLIN, 0});
    connections.push_back(connection);
  }
  if (::poll(polls.data(), polls.size(), static_cast<int>(timeout_s * 1000)) <= 0) return std::nullopt;
  for (size_t i = 1; i < polls.size(); ++i)
    if (polls[i].revents != 0) read_from(connections[i]);
  if (polls[0].revents != 0) {
    const int client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client >= 0 && clients_.size() >= kMostClients)
      ::close(client);
    else if (client >= 0)
      clients_[next_connection_++].fd = client;
  }
  return buffered();
}

bool RequestSocket::reply(int connection, const Json& body) {
  const auto found = clients_.find(connection);
  if (found == clients_.end()) return false;
  const std::string text = base::to_line(body) + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t got = ::send(found->second.fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (got >= 0) {
      sent += static_cast<size_t>(got);
      continue;
    }
    pollfd poll_entry{found->second.fd, POLLOUT, 0};
    constexpr int kPatienceMs = 2000;
    if (errno == EINTR || (errno == EAGAIN && ::poll(&poll_entry, 1, kPatienceMs) > 0)) continue;
    drop(connection);
    return false;
  }
  return true;
}

int connect_socket(const base::fs::path& path) {
  int folder_fd = -1;
  const sockaddr_un address = address_of(path, folder_fd);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool ok = fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int why = errno;
  ::close(folder_fd);
  if (ok) return fd;
  if (fd >= 0) ::close(fd);
  throw Error("{}: no run listens there ({}); is it still going?", path.string(), std::strerror(why));
}

std::string run_socket() {
  const char* path = std::getenv("KERNELSEEK_RUN_SOCKET");
  return path == nullptr ? "" : path;
}

Json request_run(const base::fs::path& socket, const Json& request) {
  base::Channel channel(connect_socket(socket));
  channel.send(request);
  const auto answer = channel.receive(-1);
  if (!answer) throw Error("{}: the run ended before it answered", socket.string());
  if (!base::value_or(answer->body, "ok", false))
    throw Error("{}", base::value_or<std::string>(answer->body, "error", "the run gave no answer"));
  return answer->body;
}

}  // namespace ks::agents
