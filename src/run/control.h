// The person's door into a run: control.sock takes JSON lines {"do": "status" | "pause" | "resume" | "stop" | "say" |
// "continue", "text": …} and answers each with one line. The agent cannot reach this socket; docs/formats/run_folder.md
// has the protocol.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agents/request_socket.h"
#include "base/json.h"

namespace ks::run {

/// A person's words without control characters; throws ks::Error where they are empty or too long.
std::string clean_words(const std::string& typed);

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
  /// The person has no question: true once for each time that it was said.
  bool take_continue() { return continued_.exchange(false); }
  /// Whether the run waits for a person's question now; told with every answer.
  void set_waiting(bool waiting);
  void set_status(Json status);

 private:
  void serve();
  Json answer(const Json& request);
  agents::RequestSocket socket_;
  std::atomic<bool> paused_ = false, stopped_ = false, ending_ = false, waiting_ = false, continued_ = false;
  std::mutex mutex_;
  std::vector<std::string> messages_;
  Json status_ = Json::object();
  std::thread thread_;
};

}  // namespace ks::run
