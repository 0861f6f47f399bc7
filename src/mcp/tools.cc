#include "mcp/tools.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "agents/command_agent.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "core/record.h"

namespace ks::mcp {
namespace {

constexpr size_t kMostText = 100000;
constexpr double kTurn_s = 0.1, kProgress_s = 2;

Json property(const char* type, const char* description) {
  Json result = {{"type", type}, {"description", description}};
  if (std::string(type) == "array") result["items"] = {{"type", "string"}};
  return result;
}

Json schema(std::initializer_list<std::pair<const char*, Json>> properties, std::vector<std::string> required) {
  Json object = Json::object();
  for (const auto& [name, type] : properties) object[name] = type;
  return {{"type", "object"}, {"properties", object}, {"required", required}, {"additionalProperties", false}};
}

std::string text_of(const Json& arguments, const char* key) {
  return base::value_or<std::string>(arguments, key, "");
}

/// Tells how long it has been, now and then.
class Clock {
 public:
  Clock(const CallContext& context, std::string what) : context_(context), what_(std::move(what)) {}
  void tick() {
    const double seconds = static_cast<double>(base::monotonic_ns() - start_) * 1e-9;
    if (seconds < told_ + kProgress_s) return;
    told_ = seconds;
    context_.progress(seconds, fmt::format("{}, {:.0f} s", what_, seconds));
  }

 private:
  const CallContext& context_;
  std::string what_;
  int64_t start_ = base::monotonic_ns();
  double told_ = 0;
};

/// One of our commands as a child; it is ended where the call is cancelled.
CallResult run_command(std::vector<std::string> words, const std::string& what, const CallContext& context) {
  base::SpawnOptions options;
  options.argv = {"sh", "-c", "exec \"$@\" </dev/null >&3 2>&3 3>&-", "sh"};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  base::Child child(options);
  Clock clock(context, what);
  std::string text;
  char buffer[65536];
  while (!*context.is_cancelled) {
    clock.tick();
    pollfd entry{child.channel().fd(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(kTurn_s * 1000)) <= 0) continue;
    const ssize_t got = ::read(child.channel().fd(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (text.size() < kMostText) text.append(buffer, static_cast<size_t>(got));
  }
  if (*context.is_cancelled) {
    child.kill();
    return {"cancelled", true, Json()};
  }
  std::optional<int> status;
  while (!(status = child.status()) && !*context.is_cancelled)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (text.size() > kMostText) text.resize(kMostText), text += "\n[the rest was left out]\n";
  const int code = status && WIFEXITED(*status) ? WEXITSTATUS(*status) : 3;
  constexpr int kCouldNot = 3;  // wrong candidates and unmet goals are answers
  return {text, code >= kCouldNot, Json()};
}

/// A request to the run that we are inside of. It cannot be taken back: cancelled, it goes on, and counts.
CallResult ask_run(const std::string& socket, const Json& request, const std::string& what,
                   const CallContext& context) {
  struct Shared {
    std::atomic<bool> is_done = false;
    Json answer;
    std::string error;
  };
  const auto shared = std::make_shared<Shared>();
  std::thread([shared, socket, request] {
    try {
      shared->answer = agents::request_run(socket, request);
    } catch (const std::exception& e) {
      shared->error = e.what();
    }
    shared->is_done = true;
  }).detach();
  Clock clock(context, what);
  while (!shared->is_done && !*context.is_cancelled) {
    clock.tick();
    std::this_thread::sleep_for(std::chrono::duration<double>(kTurn_s));
  }
  if (!shared->is_done) return {"cancelled; the run's evaluation goes on, and counts", true, Json()};
  if (!shared->error.empty()) return {shared->error, true, Json()};
  const Json& answer = shared->answer;
  std::string text = base::value_or<std::string>(answer, "table", "");
  const auto message = base::value_or<std::string>(answer, "message", "");
  if (!message.empty()) text += (text.empty() ? "" : "\n") + message + "\n";
  const Json structured = answer;  // some clients show their model this and not the text
  if (request.at("do") == "ask" && text.empty()) text = "Nothing that is known calls for a question.\n";
  if (request.at("do") == "history") text = answer.dump(1, ' ', false, Json::error_handler_t::replace);
  return {text, false, structured};
}

CallResult evaluate(const std::string& program, const std::string& socket, const Json& arguments,
                    const CallContext& context) {
  const bool check_only = base::value_or(arguments, "check_only", false);
  if (!socket.empty())
    return ask_run(socket,
                   {{"do", "evaluate"},
                    {"filter", text_of(arguments, "filter")},
                    {"check_only", check_only},
                    {"text", base::value_or<std::string>(arguments, "changed", "as asked by the agent")}},
                   "evaluating", context);
  const auto candidate = text_of(arguments, "candidate");
  if (candidate.empty())
    return {"outside a run, evaluate needs the argument \"candidate\": a file or folder", true, Json()};
  const base::TempFolder folder;
  const auto record = folder.path() / "record.json";
  std::vector<std::string> words = {program, "evaluate", candidate, "--out", record.string()};
  for (const char* key : {"operator", "grid", "filter", "device", "goal"})
    if (const auto value = text_of(arguments, key); !value.empty())
      words.insert(words.end(), {std::string("--") + key, value});
  for (const Json& baseline : base::value_or<Json>(arguments, "baselines", Json::array()))
    words.insert(words.end(), {"--baseline", baseline.is_string() ? baseline.get<std::string>() : baseline.dump()});
  if (check_only) words.push_back("--check-only");
  if (arguments.contains("seconds"))
    words.insert(words.end(), {"--time-budget", fmt::format("{:g}", arguments.at("seconds").get<double>())});
  CallResult done = run_command(words, "evaluating", context);
  if (!base::fs::exists(record)) return done;
  const Json whole = base::read_json_file(record.string());
  done.structured = {
      {"table", done.text}, {"outcome", whole.value("outcome", Json())}, {"summary", whole.value("summary", Json())}};
  return done;
}

CallResult history(const std::string& socket, const Json& arguments, const CallContext& context) {
  const auto run = text_of(arguments, "run");
  if (run.empty() && !socket.empty()) return ask_run(socket, {{"do", "history"}}, "looking", context);
  if (run.empty()) return {"outside a run, history needs the argument \"run\": a run's folder", true, Json()};
  const base::fs::path folder = base::fs::path(run) / "evaluations";
  if (!base::fs::is_directory(folder)) return {run + ": no run folder (it has no evaluations)", true, Json()};
  Json list = Json::array();
  for (int number = 1; base::fs::exists(folder / fmt::format("{:04}.json", number)); ++number) {
    const auto evaluation = core::read_evaluation(folder / fmt::format("{:04}.json", number));
    const auto fastest = evaluation.summary.geomean.find("fastest");
    const bool has = fastest != evaluation.summary.geomean.end() && fastest->second;
    list.push_back({{"number", number},
                    {"outcome", evaluation.outcome},
                    {"correct", evaluation.summary.correct},
                    {"total", evaluation.summary.total},
                    {"geomean", has ? Json(*fastest->second) : Json()}});
  }
  return {list.dump(1), false, {{"evaluations", list}}};
}

CallResult ask(const std::string& program, const std::string& socket, const Json& arguments,
               const CallContext& context) {
  const auto run = text_of(arguments, "run");
  if (run.empty() && !socket.empty()) return ask_run(socket, {{"do", "ask"}}, "asking", context);
  if (run.empty())
    return {"outside a run, ask needs the argument \"run\": a run's folder or one of evaluation records", true, Json()};
  return run_command({program, "ask", run}, "asking", context);
}

}  // namespace

std::vector<Tool> all_tools(const std::string& program, const std::string& socket) {
  std::vector<Tool> tools;
  const Json candidate = property("string", "Source file or folder of the candidate");
  const Json an_operator = property("string", "Operator, where the candidate names none");
  const Json run = property("string", "A run's folder; within a run: this run, if left out");
  tools.push_back(
      {"evaluate", "Evaluate a kernel",
       "Builds, checks and times a candidate against its rivals: which scenarios are right, how fast each is. "
       "Within a run it judges the run's candidate as it lies there and uses up one evaluation.",
       schema({{"candidate", candidate},
               {"operator", an_operator},
               {"grid", property("string", "Grid of scenarios by name, or a file")},
               {"filter", property("string", "Only scenarios that match this regular expression")},
               {"device", property("string", "cpu or cuda")},
               {"goal", property("string", "Goal expression to test, outside a run")},
               {"baselines", property("array", "Rivals, outside a run; default: every installed one")},
               {"seconds", property("number", "Time budget after the build, outside a run")},
               {"check_only", property("boolean", "Right or wrong only, no times")},
               {"changed", property("string", "What changed, in a line")}},
              {}),
       [=](const Json& arguments, const CallContext& context) {
         return evaluate(program, socket, arguments, context);
       }});
  tools.push_back({"profile", "Profile a kernel", "A profiler's raw report of a candidate on one scenario.",
                   schema({{"candidate", candidate},
                           {"scenario", property("string", "Scenario by name")},
                           {"grid", property("string", "Grid that has it")},
                           {"operator", an_operator}},
                          {"candidate", "scenario", "grid"}),
                   [=](const Json& arguments, const CallContext& context) {
                     std::vector<std::string> words = {program,
                                                       "profile",
                                                       text_of(arguments, "candidate"),
                                                       "--scenario",
                                                       text_of(arguments, "scenario"),
                                                       "--grid",
                                                       text_of(arguments, "grid")};
                     if (arguments.contains("operator"))
                       words.insert(words.end(), {"--operator", text_of(arguments, "operator")});
                     return run_command(words, "profiling", context);
                   }});
  tools.push_back({"disassemble", "Disassemble a kernel", "A candidate's machine code, as the disassembler prints it.",
                   schema({{"candidate", candidate},
                           {"function", property("string", "Only this kernel, by mangled name (GPU)")},
                           {"operator", an_operator}},
                          {"candidate"}),
                   [=](const Json& arguments, const CallContext& context) {
                     std::vector<std::string> words = {program, "disassemble", text_of(arguments, "candidate")};
                     for (const char* key : {"function", "operator"})
                       if (arguments.contains(key))
                         words.insert(words.end(), {std::string("--") + key, text_of(arguments, key)});
                     return run_command(words, "disassembling", context);
                   }});
  tools.push_back({"history", "Earlier evaluations", "The evaluations of a run in order, with their figures.",
                   schema({{"run", run}}, {}), [=](const Json& arguments, const CallContext& context) {
                     return history(socket, arguments, context);
                   }});
  tools.push_back({"ask", "Ask for a question",
                   "The question that the evidence calls for now, with the facts behind it. It is never an answer.",
                   schema({{"run", run}}, {}), [=](const Json& arguments, const CallContext& context) {
                     return ask(program, socket, arguments, context);
                   }});
  return tools;
}

}  // namespace ks::mcp
