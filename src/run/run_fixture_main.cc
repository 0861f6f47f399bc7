// A whole run over the made-up machine, for the kill tests: the tuner in a process of its own, and each evaluation in a
// worker process. Usage: ks_run_fixture run TASK RUNS | resume RUN | agent | worker
#include <unistd.h>

#include <thread>

#include "agents/process_agent.h"
#include "agents/tuner.h"
#include "base/subprocess.h"
#include "run/fake_machine.h"
#include "run/run_task.h"

namespace ks::run {
namespace {

std::string self() {
  return base::fs::read_symlink("/proc/self/exe").string();
}

/// Runs beside the parent, as a worker that judges would; answers one line and waits to be killed.
int be_worker() {
  base::Channel channel(base::Child::kChannelFd);
  while (const auto request = channel.receive(-1)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (!channel.send({{"done", true}})) break;
  }
  return 0;
}

/// The made-up figures, if the worker lived; a worker that died is a verdict.
core::Evaluation evaluate_in_worker(const evaluator::Request& request) {
  base::SpawnOptions options;
  options.argv = {self(), "worker"};
  base::Child worker(options);
  core::Evaluation evaluation = fake_evaluation(request);
  worker.channel().send({{"do", "run"}});
  if (worker.channel().receive(10)) return evaluation;
  for (auto& result : evaluation.scenarios) {
    result.candidate.verdict = core::Verdict::kCrash;
    result.candidate.time_us.reset();
    result.ratio.clear();
  }
  evaluation.summary.correct = 0;
  evaluation.summary.geomean.clear();
  evaluation.summary.geomean_low.clear();
  evaluation.summary.geomean_high.clear();
  return evaluation;
}

int run_it(const RunOptions& options) {
  Workbench bench;
  bench.evaluate = evaluate_in_worker;
  bench.make_agent = [](const AgentSetup&) -> std::unique_ptr<agents::Agent> {
    base::SpawnOptions spawn;
    spawn.argv = {self(), "agent"};
    return std::make_unique<agents::ProcessAgent>("tuner", spawn);
  };
  bench.make_questioner = [](const Task&, const RunPaths&) {
    return [](const Moment& moment) -> std::optional<Asked> {
      if (moment.evaluations % 3 != 0) return std::nullopt;
      return Asked{"fake-question",
                   "gap_triage",
                   "What is different about tall?",
                   "tall: slow.\nWhat is different about tall?",
                   {},
                   "tall"};
    };
  };
  const RunResult result = run_task(options, bench);
  fmt::print("{} {} {}\n", result.decision, result.evaluations, result.best);
  return 0;
}

}  // namespace
}  // namespace ks::run

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "worker") return ks::run::be_worker();
    if (what == "agent") {
      ks::agents::Tuner tuner;
      ks::agents::serve_agent(tuner, ks::base::Child::kChannelFd);
      return 0;
    }
    ks::run::RunOptions options;
    if (what == "run" && argc > 3)
      options.task = argv[2], options.runs = argv[3];
    else if (what == "resume" && argc > 2)
      options.resume = argv[2];
    else
      return 64;
    return ks::run::run_it(options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 3;
  }
}
