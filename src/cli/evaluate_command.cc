// kernelseek evaluate CANDIDATE: build, check, time, table.
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "agents/command_agent.h"
#include "base/file.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/goal_figures.h"
#include "evaluator/evaluate.h"

namespace ks::cli {
namespace {

std::atomic<bool> interrupted = false;

/// One line on a terminal, rewritten; nothing elsewhere.
void show_progress(const evaluator::Progress& progress) {
  if (!base::is_interactive()) return;
  std::string line = fmt::format("[{}/{}] {} {}  {:.0f} s", progress.index + 1, progress.total, progress.stage,
                                 progress.scenario, progress.elapsed_s);
  if (line.size() + 1 > base::terminal_width()) line.resize(base::terminal_width() - 1);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
}

void end_progress() {
  if (base::is_interactive()) std::fprintf(stderr, "\r\033[K");
}

/// 2: the candidate did something wrong; unsupported and not_run only leave a goal unmet.
int code_of(const core::Evaluation& evaluation, const std::string& goal) {
  if (evaluation.outcome != "judged") return kWrong;
  for (const auto& result : evaluation.scenarios) switch (result.candidate.verdict) {
      case core::Verdict::kWrong:
      case core::Verdict::kCheat:
      case core::Verdict::kSuspect:
      case core::Verdict::kCrash:
      case core::Verdict::kTimeout:
        return kWrong;
      default:
        break;
    }
  if (goal.empty()) return kDone;
  return goal_is_met(goal, evaluation) ? kDone : kNotMet;
}

struct EvaluateOptions {
  evaluator::Request request;
  std::string goal, out, resume;
  bool json = false, unsealed = false;
};

/// Within a run the run judges, and its figures count; true if it answered.
bool evaluate_through_run(const EvaluateOptions& options) {
  const std::string socket = agents::run_socket();
  if (socket.empty() || options.request.candidate.rfind("baseline:", 0) == 0) return false;
  const Json answer = agents::request_run(
      socket, {{"do", "evaluate"}, {"filter", options.request.filter}, {"check_only", options.request.check_only}});
  if (options.json)
    fmt::print("{}\n", answer.dump(1, ' ', false, Json::error_handler_t::replace));
  else
    fmt::print("{}{}{}", answer.value("table", ""), answer.value("message", "").empty() ? "" : "\n",
               answer.value("message", ""));
  exit_code() = answer.value("goal_state", "") == "met" ? kDone : kNotMet;
  return true;
}

/// Throws before anything was measured where a record could not be written there afterwards.
void check_writable(const base::fs::path& path) {
  if (base::fs::is_directory(path)) throw Error("{}: is a folder; --out names a file", path.string());
  const base::fs::path probe = path.string() + ".probe";
  base::write_file_atomically(probe, "");
  base::fs::remove(probe);
}

/// Writes the record; where that fails after all (a disk that filled up meanwhile) it is kept among the temporary
/// files.
void keep_record(const core::Evaluation& evaluation, const std::string& path) {
  try {
    core::write_evaluation(evaluation, path);
  } catch (const Error& error) {
    const auto elsewhere = base::fs::temp_directory_path() / fmt::format("kernelseek-record-{}.json", ::getpid());
    core::write_evaluation(evaluation, elsewhere);
    throw Error("{}; the record is kept as {}", error.what(), elsewhere.string());
  }
}

void evaluate_command(EvaluateOptions& options) {
  if (evaluate_through_run(options)) return;
  if (!options.out.empty()) check_writable(options.out);
  if (!options.goal.empty()) check_goal(options.goal);
  if (!options.resume.empty()) options.request.resume = core::read_evaluation(options.resume);
  std::signal(SIGINT, [](int) { interrupted = true; });
  if (options.unsealed) options.request.counters_off.push_back("sandbox");
  options.request.cancel = &interrupted;
  options.request.progress = show_progress;
  const core::Evaluation evaluation = evaluator::evaluate(options.request);
  end_progress();
  if (options.json)
    fmt::print("{}\n", core::to_json(evaluation).dump(1, ' ', false, Json::error_handler_t::replace));
  else
    fmt::print("{}", evaluator::evaluation_table(evaluation, base::terminal_width()));
  if (!options.goal.empty() && !options.json)
    fmt::print("goal {}: {}\n", options.goal, goal_is_met(options.goal, evaluation) ? "met" : "not met");
  if (!options.out.empty()) keep_record(evaluation, options.out);
  if (interrupted && !options.out.empty()) fmt::print("interrupted; go on with: --resume {}\n", options.out);
  exit_code() = code_of(evaluation, options.goal);
}

}  // namespace

void add_evaluate_command(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  auto* command = app.add_subcommand("evaluate", "Build, check and time a candidate against the baselines");
  command->footer(
      "Example: kernelseek evaluate examples/attention_naive.cpp --grid demo --filter causal\n"
      "Exit code: 0 goal met or none given, 1 goal not met, 2 the candidate is wrong, 3 could not judge.");
  auto& request = options->request;
  command->add_option("candidate", request.candidate, "Source file, folder with candidate.toml, or baseline:NAME")
      ->required();
  command->add_option("--operator", request.operator_name, "Operator by name, or the path of its folder");
  command->add_option("--grid", request.grid, "Grid of the operator by name, or a file")->capture_default_str();
  command->add_option("--filter", request.filter, "Regular expression over category/name");
  command->add_option("--device", request.device, "cpu or cuda")->capture_default_str();
  command->add_option("--baseline", request.baselines,
                      "Baselines to compare with (repeat), candidate:PATH, or none; default: every installed one");
  command->add_option("--threads", request.threads, "CPU threads for everyone; 0: every core")->capture_default_str();
  command->add_option("--time-budget", request.time_budget_s, "Seconds after the build; 0: as needed")
      ->capture_default_str();
  command->add_option(
      "--prebuilt", request.prebuilt,
      "Folder of the candidate as built elsewhere from the same sources (builds/HASH of the cache there)");
  command
      ->add_option("--timing", request.timing,
                   "blocks: other inputs in every call, caches cold; warm: one set of buffers called again and again")
      ->capture_default_str();
  command->add_option("--goal", options->goal, "Goal expression, e.g. \"geomean >= 1.0 and correct == all\"");
  command->add_option("--out", options->out, "Write the record to this file");
  command->add_option("--resume", options->resume, "Add what this record lacks");
  command->add_flag("--json", options->json, "Print the record instead of the table");
  command->add_flag("--unsealed", options->unsealed,
                    "Leave the worker unsandboxed (profilers need it); the record says so");
  command->add_flag("--check-only", request.check_only, "Right or wrong only, no times");
  command->add_flag("!--no-aa", request.aa, "Leave out the candidate's comparison with itself");
  command->callback([options] { evaluate_command(*options); });
}

}  // namespace ks::cli
