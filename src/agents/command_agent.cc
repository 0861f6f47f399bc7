#include "agents/command_agent.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/subprocess.h"
#include "trace/import.h"

namespace ks::agents {
namespace {

double now_s() {
  return static_cast<double>(base::monotonic_ns()) * 1e-9;
}

/// An importer for a stream of JSON lines; null for "text".
std::unique_ptr<trace::Importer> importer_for(const std::string& events, const std::string& file) {
  if (events == "claude-code") return trace::make_claude_code_importer();
  if (events == "codex") return trace::make_codex_importer();
  if (events == "cursor") return trace::make_cursor_importer();
  if (events == "gemini-cli") return trace::make_gemini_lines_importer();
  if (events == "text") return nullptr;
  throw Error("{}: unknown \"events\": \"{}\"; known: claude-code, codex, cursor, gemini-cli, text", file, events);
}

/// A random UUID (version 4), for programs that want the session's id from us.
std::string new_uuid() {
  const uint64_t a = base::secret_seed(), b = base::secret_seed();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff, 8 + (b >> 62),
                     (b >> 48) & 0xfff, b & 0xffffffffffffull);
}

Json figures_json(const AgentContext& context) {
  const Json all = to_json(context);
  return all.at("history");
}

}  // namespace

/// One start of the program, from its message to its end.
struct CommandAgent::Turn {
  std::unique_ptr<base::Child> child;
  std::thread reader;
  std::mutex mutex;
  std::deque<std::string> lines;  ///< arrived, not yet looked at
  std::atomic<bool> at_end = false;
  std::atomic<double> last_line_s = 0;
  double started_s = now_s(), finished_s = 0;
  bool has_failed = false, is_limited = false;
  int open_tools = 0;
  int64_t events = 0;
  std::string text;  ///< the last that the agent said
  base::fs::path log, errors;

  ~Turn() {
    if (child) child->kill();
    if (reader.joinable()) reader.join();
  }
};

CommandAgent::CommandAgent(CommandSetup setup) : setup_(std::move(setup)), socket_(setup_.socket) {
  for (const auto& name : setup_.description.environment)
    if (const char* value = std::getenv(name.c_str()); value != nullptr && is_secret_name(name))
      redactor_.add(name, value);
}

CommandAgent::~CommandAgent() = default;

Json CommandAgent::state() const {
  return {{"session", session_}, {"turns", turns_}};
}

void CommandAgent::restore(const Json& state) {
  session_ = base::value_or<std::string>(state, "session", "");
  turns_ = base::value_or(state, "turns", 0);
}

void CommandAgent::start_turn(const AgentContext& context) {
  last_message_ = message_for(context);
  ++turns_;
  const auto& description = setup_.description;
  const bool can_resume = !description.resume.empty() && !session_.empty();
  if (!can_resume && !description.start.empty()) session_ = description.session_from.is_set() ? "" : session_;
  const auto settings = setup_.run_folder / "told" / "settings.json";
  const std::string session = can_resume ? session_ : new_uuid();
  std::map<std::string, std::string> values = {
      {"message", last_message_},
      {"session", session},
      {"new_session", session},
      {"model", setup_.model},
      {"candidate", context.candidate},
      {"settings", settings.string()},
      {"kernelseek", setup_.kernelseek},
      {"run", setup_.run_folder.string()},
      {"socket", setup_.socket.string()},
      {"log", (setup_.isolation.work.parent_path() / "agent" / "transcript").string()}};
  if (const char* endpoint = std::getenv(description.endpoint.c_str()); endpoint != nullptr)
    values["endpoint"] = endpoint;
  if (!description.settings.empty()) base::write_file_atomically(settings, filled(description.settings, values));
  prepare_home(values);
  const auto words = command_line(can_resume);
  setup_.sink("message", "main", {{"role", "system"}, {"source", "prompt"}, {"text", last_message_}});
  start_program(filled(words, values), last_message_);
}

void CommandAgent::start_program(const std::vector<std::string>& words, const std::string& message) {
  turn_ = std::make_unique<Turn>();
  Turn& turn = *turn_;
  // One importer for all turns: programs count their tokens over the whole session.
  if (!importer_) importer_ = importer_for(setup_.description.events, setup_.description.file);
  turn.log = setup_.logs / fmt::format("turn-{:04}.out", turns_);
  turn.errors = setup_.logs / fmt::format("turn-{:04}.err", turns_);
  const auto input = setup_.logs / "input";
  base::write_file_atomically(input, setup_.description.message_on_stdin ? message : "");
  base::SpawnOptions program;
  program.argv = words;
  program.folder = setup_.isolation.work.string();
  const Isolated isolated = isolate(program, setup_.isolation);
  if (turns_ == 1)
    setup_.sink("session_start", "main",
                {{"session", "main"},
                 {"agent", name()},
                 {"model", setup_.model},
                 {"isolated", isolated.is_isolated},
                 {"unisolated", isolated.why_not}});
  base::SpawnOptions options = isolated.options;
  // The shell puts the streams in place: output to the channel, errors to a file, input from a file that ends at once.
  options.argv = {"sh", "-c",           "in=$1; err=$2; shift 2; exec \"$@\" <\"$in\" >&3 2>>\"$err\" 3>&-",
                  "sh", input.string(), turn.errors.string()};
  options.argv.insert(options.argv.end(), isolated.options.argv.begin(), isolated.options.argv.end());
  options.clear_env = true;
  options.env = environment(message);
  turn.child = std::make_unique<base::Child>(options);
  turn.last_line_s = now_s();
  evaluated_this_turn_ = false;
  // A reader of its own, so that a program is never held up by what we do with its lines.
  turn.reader = std::thread([&turn, this] {
    std::ofstream log(turn.log, std::ios::app | std::ios::binary);
    std::string pending;
    char buffer[65536];
    while (true) {
      const ssize_t got = ::read(turn.child->channel().fd(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      pending.append(buffer, static_cast<size_t>(got));
      for (size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
        const std::string line = redactor_.redact(pending.substr(0, end));
        pending.erase(0, end + 1);
        log << line << '\n' << std::flush;
        turn.last_line_s = now_s();
        const std::lock_guard guard(turn.mutex);
        turn.lines.push_back(line);
      }
    }
    const std::lock_guard guard(turn.mutex);
    if (!pending.empty()) turn.lines.push_back(redactor_.redact(pending));
    turn.at_end = true;
  });
  // Events of the importer go on to the trace, with what we need to know of them on the way.
  if (importer_)
    importer_->set_use([&turn, this](trace::Event&& event) {
      ++turn.events;
      if (event.kind == "tool_call") ++turn.open_tools;
      if (event.kind == "tool_result" && turn.open_tools > 0) --turn.open_tools;
      const bool is_agents = event.kind == "message" && base::value_or<std::string>(event.body, "role", "") == "agent";
      if (is_agents) turn.text = base::value_or<std::string>(event.body, "text", "");
      // Our own prompt comes back in some streams; it is in the trace already.
      if (event.kind == "session_start" || event.kind == "session_end" || (event.kind == "message" && !is_agents))
        return;
      setup_.sink(event.kind, event.session.empty() ? "main" : event.session, event.body);
    });
}

void CommandAgent::take_line(const std::string& line) {
  Turn& turn = *turn_;
  for (const auto& text : setup_.description.rate_limit)
    if (line.find(text) != std::string::npos) turn.is_limited = true;
  for (const auto& text : setup_.description.failed_text)
    if (line.find(text) != std::string::npos) turn.has_failed = true;
  if (!importer_) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    ++turn.events;
    turn.text = line;
    if (!setup_.description.trajectory.empty()) return;  // its transcript says the same, and in order
    setup_.sink("message", "main", {{"role", "agent"}, {"text", line}, {"source", "output"}});
    return;
  }
  if (Json::accept(line)) {
    const Json json = Json::parse(line);
    const auto& description = setup_.description;
    if (description.session_from.matches(json) && json.contains(description.session_key) &&
        json.at(description.session_key).is_string())
      session_ = json.at(description.session_key).get<std::string>();
    if (description.finished.matches(json)) turn.finished_s = now_s();
    if (description.failed.matches(json)) turn.has_failed = true;
  }
  std::string padded = line;
  padded.reserve(line.size() + 256);
  importer_->line(padded);
}

void CommandAgent::take_lines() {
  std::deque<std::string> lines;
  {
    const std::lock_guard guard(turn_->mutex);
    lines.swap(turn_->lines);
  }
  for (const auto& line : lines) take_line(line);
}

bool CommandAgent::is_turn_over() {
  Turn& turn = *turn_;
  const double now = now_s(), quiet = now - turn.last_line_s;
  const Patience& patience = setup_.patience;
  if (turn.at_end) return true;
  if (!turn.child->alive()) {
    // A grandchild may hold the pipe open: what is there has been read, wait no longer than a moment.
    constexpr double kDrain_s = 1;
    if (quiet > kDrain_s) return true;
  }
  if (turn.finished_s > 0 && now - turn.finished_s > patience.after_finish_s) return true;
  if (turn.events == 0 && quiet > patience.first_line_s) {
    turn.has_failed = true;
    setup_.sink("note", "main", {{"text", "the program printed nothing; it is started again"}});
    return true;
  }
  if (turn.open_tools == 0 && pending_connection_ == 0 && quiet > patience.silence_s) {
    turn.has_failed = true;
    setup_.sink("note", "main", {{"text", "the program went silent with no tool at work; it is resumed"}});
    return true;
  }
  return false;
}

/// What the program wrote as errors is kept, secrets replaced, and may say that it failed.
void CommandAgent::take_errors() {
  if (!base::fs::exists(turn_->errors)) return;
  const std::string errors = redactor_.redact(base::read_file(turn_->errors));
  base::write_file_atomically(turn_->errors, errors);
  for (const auto& text : setup_.description.failed_text)
    if (errors.find(text) != std::string::npos) turn_->has_failed = true;
  for (const auto& text : setup_.description.rate_limit)
    if (errors.find(text) != std::string::npos) turn_->is_limited = true;
}

void CommandAgent::take_trajectory() {
  const auto log = setup_.isolation.work.parent_path() / "agent" / "transcript";
  if (setup_.description.trajectory.empty() || !base::fs::exists(log)) return;
  trace::ReadOptions options;
  options.format = setup_.description.trajectory;
  try {
    trace::read_transcript(
        log,
        [&](trace::Event&& event) {
          const bool is_agents =
              event.kind == "message" && base::value_or<std::string>(event.body, "role", "") == "agent";
          if (event.kind == "tool_call" || event.kind == "tool_result" || event.kind == "usage" || is_agents)
            setup_.sink(event.kind, "main", redactor_.redact(event.body));
        },
        options);
  } catch (const Error& e) {
    setup_.sink("note", "main", {{"text", fmt::format("the transcript could not be read: {}", e.what())}});
  }
  base::fs::rename(log, setup_.logs / fmt::format("turn-{:04}.transcript", turns_));
}

void CommandAgent::wait(double seconds) {
  const double until = now_s() + seconds;
  while (now_s() < until && !setup_.should_stop()) ::usleep(100000);
}

std::optional<AgentStep> CommandAgent::failed_turn(const std::string& why) {
  if (turn_->is_limited) {
    const double seconds =
        std::min(setup_.patience.rate_limit_s * static_cast<double>(1 << std::min(waits_++, 6)), 1800.0);
    setup_.sink("note", "main",
                {{"what", "rate_limit"}, {"text", fmt::format("the provider asks to wait; {:.0f} s", seconds)}});
    turn_.reset();
    wait(seconds);
  } else if (++failures_ >= setup_.patience.failures) {
    constexpr size_t kLastWords = 400;
    std::string said = redactor_.redact(base::fs::exists(turn_->errors) ? base::read_file(turn_->errors) : "");
    if (said.find_first_not_of(" \t\r\n") == std::string::npos) said = turn_->text;
    size_t from = said.size() - std::min(said.size(), kLastWords);
    while (from < said.size() && (static_cast<unsigned char>(said[from]) & 0xC0) == 0x80) ++from;  // whole characters
    throw Error("agent {}: {} turns in a row did nothing ({}): {}", name(), failures_, why, said.substr(from));
  }
  turn_.reset();
  return std::nullopt;
}

std::optional<AgentStep> CommandAgent::end_turn() {
  take_lines();
  const int status = turn_->child->kill();
  if (turn_->reader.joinable()) turn_->reader.join();
  take_lines();
  take_errors();
  take_trajectory();
  const bool did_something = evaluated_this_turn_ || turn_->events > 0;
  const bool is_empty = setup_.description.needs_text && turn_->text.empty();
  const bool cannot_start = !WIFSIGNALED(status) && WEXITSTATUS(status) == 127;
  // The exit code alone decides nothing: programs leave with 0 after a failure and with 1 after good work.
  if (turn_->has_failed || is_empty || !did_something || cannot_start) return failed_turn(base::describe_exit(status));
  failures_ = waits_ = 0;
  AgentStep step{AgentStep::Kind::kClaim, turn_->text.empty() ? "the turn ended" : turn_->text, {"turn_ended"}};
  if (setup_.description.evaluate_after_turn) {
    step = {AgentStep::Kind::kEvaluate, turn_->text.substr(0, 200)};
    evaluated_after_turn_ = true;
  }
  turn_.reset();
  return step;
}

std::optional<AgentStep> CommandAgent::serve_request(const AgentContext& context) {
  constexpr double kTurn_s = 0.1;
  const auto request = socket_.next(kTurn_s);
  if (!request) return std::nullopt;
  const auto what = base::value_or<std::string>(request->body, "do", "");
  if (what == "history") {
    socket_.reply(request->connection, {{"ok", true},
                                        {"evaluations", figures_json(context)},
                                        {"goal", context.goal},
                                        {"minutes_left", context.minutes_left},
                                        {"evaluations_left", context.evaluations_left}});
    return std::nullopt;
  }
  if (what != "evaluate" && what != "ask") {
    socket_.reply(
        request->connection,
        {{"ok", false}, {"error", fmt::format("unknown \"do\": \"{}\"; known: evaluate, ask, history", what)}});
    return std::nullopt;
  }
  pending_connection_ = request->connection;
  pending_kind_ = what;
  evaluated_this_turn_ = true;
  AgentStep step{what == "ask" ? AgentStep::Kind::kAsk : AgentStep::Kind::kEvaluate,
                 base::value_or<std::string>(request->body, "text", "as asked by the agent")};
  step.filter = base::value_or<std::string>(request->body, "filter", "");
  step.check_only = base::value_or(request->body, "check_only", false);
  return step;
}

void CommandAgent::answer_pending(const AgentContext& context) {
  if (pending_connection_ == 0) return;
  std::string message;
  for (size_t i = context.messages.size() - std::min(context.messages.size(), context.new_messages);
       i < context.messages.size(); ++i)
    message += (message.empty() ? "" : "\n\n") + context.messages[i].text;
  Json reply = {{"ok", true},
                {"message", message},
                {"goal", context.goal},
                {"goal_state", context.goal_state},
                {"minutes_left", context.minutes_left},
                {"evaluations_left", context.evaluations_left}};
  if (pending_kind_ == "evaluate" && !context.history.empty()) {
    reply["table"] = context.last_table;
    reply["evaluation"] = figures_json(context).back();
  }
  socket_.reply(pending_connection_, reply);
  pending_connection_ = 0;
}

AgentStep CommandAgent::next(const AgentContext& context) {
  answer_pending(context);
  // A program that cannot ask for evaluations cannot tell that it is done either.
  if (std::exchange(evaluated_after_turn_, false) && context.goal_state == "met")
    return {AgentStep::Kind::kClaim, "the last evaluation meets the goal", {"goal_reached"}};
  while (!setup_.should_stop()) {
    if (!turn_) start_turn(context);
    if (auto step = serve_request(context)) return *step;
    take_lines();
    if (is_turn_over())
      if (auto step = end_turn()) return *step;
  }
  turn_.reset();
  return {AgentStep::Kind::kStop, "stopped"};
}

}  // namespace ks::agents
