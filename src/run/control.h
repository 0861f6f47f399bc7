// The person's door into a run: control.sock takes JSON lines {"do": "status" | "pause" | "resume" | "stop" | "say",
// "text": …} and answers each with one line. The agent cannot reach this socket; docs/formats/run_folder.md has the
// protocol.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agents/request_socket.h"
#include "base/json.h"

namespace ks::run {

class Control {
 public:
  /// Listens in the run's folder until it is destroyed.
  explicit Control(const base::fs::path& socket);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  bool is_paused() const { return paused_; }
  bool is_stopped() const { return stopped_; }
  const std::atomic<bool>& stopped() const { return stopped_; }
  /// What the person typed since the last call.
  std::vector<std::string> take_messages();
  void set_status(Json status);

 private:
  void serve();
  Json answer(const Json& request);
  agents::RequestSocket socket_;
  std::atomic<bool> paused_ = false, stopped_ = false, ending_ = false;
  std::mutex mutex_;
  std::vector<std::string> messages_;
  Json status_ = Json::object();
  std::thread thread_;
};

}  // namespace ks::run
