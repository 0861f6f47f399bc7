// Drives an agent program by its description: starts it headless in the run's working folder, behind the walls of
// isolation.h, gives it the message, turns what it prints into events of the trace through the importers, and answers
// what it asks for over the run's socket (evaluate, ask, history). When its turn ends, that is a claim, whatever it
// said: the run's judge looks, and the program's session is resumed with the answer.
//
// What goes wrong in headless use is expected: no line at first, silence with no tool at work, staying alive after the
// result, a rate limit reported as success, an exit code 0 after a failure. docs/formats/agent.md has the rules.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "agents/agent.h"
#include "agents/description.h"
#include "agents/isolation.h"
#include "agents/redact.h"
#include "agents/request_socket.h"
#include "trace/importer.h"

namespace ks::agents {

/// Seconds of patience, each for one thing that programs have been seen to do.
struct Patience {
  double first_line_s = 180;   ///< until it prints anything
  double silence_s = 1200;     ///< without a line while no tool is at work
  double after_finish_s = 15;  ///< alive after it said that it is done
  double rate_limit_s = 30;    ///< the first wait; doubled each time
  int failures = 3;            ///< turns in a row that did nothing
};

struct CommandSetup {
  Description description;
  std::string model;
  std::string prompt;  ///< the first message
  IsolationSpec isolation;
  base::fs::path socket;  ///< run.sock
  base::fs::path logs;
  base::fs::path run_folder;
  base::fs::path home;     ///< the program's HOME, its own; empty: the person's
  std::string kernelseek;  ///< path of this program
  Patience patience;
  std::function<void(const std::string& kind, const std::string& session, const Json& body)> sink;
  std::function<bool()> should_stop;
};

class CommandAgent : public Agent {
 public:
  explicit CommandAgent(CommandSetup setup);
  ~CommandAgent() override;
  std::string name() const override { return setup_.description.name; }
  AgentStep next(const AgentContext& context) override;
  Json state() const override;
  void restore(const Json& state) override;

 private:
  struct Turn;
  void start_turn(const AgentContext& context);
  void prepare_home(const std::map<std::string, std::string>& values);
  std::vector<std::string> command_line(bool can_resume) const;
  std::vector<std::pair<std::string, std::string>> environment(const std::string& message) const;
  void start_program(const std::vector<std::string>& words, const std::string& message);
  std::string message_for(const AgentContext& context) const;
  std::optional<AgentStep> serve_request(const AgentContext& context);
  void answer_pending(const AgentContext& context);
  void take_lines();
  void take_line(const std::string& line);
  bool is_turn_over();
  std::optional<AgentStep> end_turn();
  std::optional<AgentStep> failed_turn(const std::string& why);
  void take_errors();
  void take_trajectory();
  void wait(double seconds);

  CommandSetup setup_;
  RequestSocket socket_;
  Redactor redactor_;
  std::unique_ptr<trace::Importer> importer_;  ///< null: its output is text
  std::unique_ptr<Turn> turn_;
  std::string session_;
  int turns_ = 0, failures_ = 0, waits_ = 0;
  int pending_connection_ = 0;  ///< who waits for an evaluation or a question
  std::string pending_kind_;
  std::string last_message_;
  bool evaluated_this_turn_ = false, evaluated_after_turn_ = false;
};

}  // namespace ks::agents
