#include "cli/run_command.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "agents/description.h"
#include "agents/tuner.h"
#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/data_checks.h"
#include "cli/live_page.h"
#include "run/run_task.h"

namespace ks::cli {
namespace {

std::atomic<bool> interrupted = false;

struct RunOptions {
  run::RunOptions run;
  bool dry_run = false, json = false, serve = false;
  int port = 0;
};

/// Lines of standard input as they are typed, without waiting longer than asked.
class StandardInput {
 public:
  std::optional<run::TypedLine> read_line(double timeout_s) {
    for (;;) {
      if (const size_t end = pending_.find('\n'); end != std::string::npos) {
        run::TypedLine line{pending_.substr(0, end)};
        pending_.erase(0, end + 1);
        return line;
      }
      pollfd ready{STDIN_FILENO, POLLIN, 0};
      if (::poll(&ready, 1, static_cast<int>(timeout_s * 1000)) <= 0) return std::nullopt;
      char bytes[4096];
      const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
      if (got <= 0) return run::TypedLine{"", true};
      pending_.append(bytes, static_cast<size_t>(got));
    }
  }

 private:
  std::string pending_;
};

/// The page of a run in this process, while the run goes on.
class PageBeside {
 public:
  PageBeside(const std::string& run, int port) : page_(run, port), thread_([this] { page_.server().serve(); }) {
    fmt::print(stderr, "watch and ask at {}\n", page_.server().address());
  }
  ~PageBeside() {
    page_.server().stop();
    thread_.join();
  }

 private:
  LivePage page_;
  std::thread thread_;
};

std::string ratio_text(double ratio) {
  return ratio > 0 ? fmt::format("{:.3f}x", ratio) : std::string("undefined");
}

void say_result(const run::RunResult& result) {
  if (result.decision.empty()) {
    fmt::print("interrupted after {} evaluations; go on with: kernelseek run --resume {}\n", result.evaluations,
               result.folder);
    return;
  }
  fmt::print("{}: {} ({}), {} evaluations, geomean against the fastest {} at the start, {} at best\n", result.folder,
             result.decision == "met"         ? "goal met"
             : result.decision == "undecided" ? "undecided, which is not met"
                                              : "goal not met",
             result.reason, result.evaluations, ratio_text(result.first), ratio_text(result.best));
}

void run_command(RunOptions& options) {
  if (options.run.task.empty() == options.run.resume.empty())
    throw Error("run needs a task file or --resume RUN, one of them");
  if (options.dry_run) {
    if (options.run.task.empty()) throw Error("--dry-run needs a task file");
    fmt::print("{}", run::describe_run(options.run));
    return;
  }
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
  options.run.cancel = &interrupted;
  if (options.json) options.run.out = stderr;
  auto input = std::make_shared<StandardInput>();
  if (::isatty(STDIN_FILENO) != 0)
    options.run.person.read_line = [input](double timeout_s) { return input->read_line(timeout_s); };
  options.run.person.has_page = options.serve;
  std::unique_ptr<PageBeside> page;
  if (options.serve)
    options.run.on_started = [&](const std::string& folder) {
      page = std::make_unique<PageBeside>(folder, options.port);
    };
  const run::RunResult result = run::run_task(options.run, run::real_workbench());
  if (options.json)
    fmt::print("{}\n", Json{{"folder", result.folder},
                            {"decision", result.decision},
                            {"reason", result.reason},
                            {"evaluations", result.evaluations},
                            {"first", result.first},
                            {"best", result.best}}
                           .dump());
  else
    say_result(result);
  exit_code() = result.decision == "met" ? kDone : result.decision.empty() ? kCouldNot : kNotMet;
}

void add_internal_agent(CLI::App& app) {
  auto* command = app.add_subcommand("agent", "Serves the embedded agent to a run (internal)");
  command->group("");
  auto* tuner = command->add_subcommand("tuner", "");
  tuner->callback([] {
    agents::Tuner agent;
    agents::serve_agent(agent, base::Child::kChannelFd);
  });
}

/// What `data check` looks at of ours: agent programs, and the tasks that come with the project.
void check_agents_and_tasks(DataReport& report) {
  namespace fs = base::fs;
  for (const auto& entry : fs::directory_iterator(base::project_root() / "data" / "agents"))
    if (entry.path().extension() == ".toml")
      report.check(entry.path().string(), [&] { (void)agents::read_description(entry.path()); });
  const auto tasks = base::project_root() / "examples" / "tasks";
  if (!fs::is_directory(tasks)) return;
  for (const auto& entry : fs::directory_iterator(tasks))
    if (entry.path().extension() == ".toml")
      report.check(entry.path().string(), [&] { (void)run::read_task(entry.path()); });
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  auto* command = app.add_subcommand("run", "An agent, a questioner, a judge and a budget; everything recorded");
  command->footer(
      "Example: kernelseek run examples/tasks/attention_demo.toml --questioner bank\n"
      "         kernelseek run --resume runs/attention_demo-1\n"
      "Exit code: 0 goal met, 1 not met, 3 could not run or was interrupted.");
  command->add_option("task", options->run.task, "Task file");
  command->add_option("--resume", options->run.resume, "Go on with this run's folder");
  command->add_option("--questioner", options->run.questioner,
                      "Takes the place of the task's: none, neutral, bank, shuffled, hints, human, model");
  command->add_option("--runs", options->run.runs, "Folder for new runs")->capture_default_str();
  auto* serve = command->add_flag("--serve", options->serve, "Show the run live on a page in which a person can ask");
  command->add_option("--port", options->port, "The page's port on 127.0.0.1; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->needs(serve);
  command->add_flag("--dry-run", options->dry_run, "Say what would happen, and do nothing");
  command->add_flag("--json", options->json, "Print the result as JSON; progress goes to standard error");
  command->callback([options] { run_command(*options); });
  add_internal_agent(app);
  more_data_checks().push_back(check_agents_and_tasks);
}

}  // namespace ks::cli
