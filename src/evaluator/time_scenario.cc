// Timing of one scenario. A sample is a block of n calls on n distinct input and output sets, made after the previous
// block was verified; sides take turns (A B B A); the parent's clock brackets each block; every timed output is
// verified. A worker is frozen between its blocks: it cannot finish late, start early, or disturb the others.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/hash.h"
#include "evaluator/judge_scenario.h"
#include "stats/intervals.h"

namespace ks::evaluator {
namespace {

constexpr double kMinBlockUs = 2000;            // so that the cost of asking (tens of us) stays small
constexpr double kLongCallUs = 200000;          // a call this long needs no second one in its block
constexpr uint64_t kSetsMemory = 512ull << 20;  // on the CPU; a GPU has room for sixteen times as much
constexpr int kMaxSets = 64;
constexpr int kWarmCallsMax = 1000;
constexpr int kEagerSamples = 2, kPlanningSamples = 3;
constexpr size_t kEagerCalls = 8;  // enough to see the host's share; more would cost as much as the timing

/// Calls of one block of this side.
int calls_of_block(const Workbench& bench, const ProblemInfo& problem, double call_us) {
  if (call_us > kLongCallUs) return 1;
  const auto cold =
      static_cast<double>(bench.oracle.cold_bytes()) / static_cast<double>(std::max<uint64_t>(problem.set_bytes, 1));
  const double wanted = std::max({1.0, std::ceil(cold), std::ceil(kMinBlockUs / std::max(call_us, 1.0))});
  const uint64_t memory = bench.on_gpu ? 16 * kSetsMemory : kSetsMemory;
  const double fitting = static_cast<double>(memory) / static_cast<double>(std::max<uint64_t>(problem.set_bytes, 1));
  return static_cast<int>(std::clamp(std::min(wanted, fitting), 1.0, static_cast<double>(kMaxSets)));
}

/// Calls of a block on one set: as many as make the cost of asking small.
int warm_calls(double call_us) {
  return static_cast<int>(std::clamp(std::ceil(kMinBlockUs / std::max(call_us, 1.0)), 1.0, double{kWarmCallsMax}));
}

/// Sides that are timed, with the sets of their block.
struct Runner {
  Contender* side = nullptr;
  std::vector<int> sets;    ///< of the calls, in order
  std::vector<int> filled;  ///< the distinct ones: what is prepared and verified
  bool plans = false;       ///< ks_plan_lengths goes before each call, and is counted
  double call_us = 0;       ///< of the newest block
  double limit_s = 60;
};

void disqualify(Runner& runner, core::Verdict verdict, const std::string& reason) {
  runner.side->result.verdict = verdict;
  runner.side->result.reason = reason + " (in a timed block)";
  runner.side->result.samples_us.clear();
}

/// What the device said after a sample, kept under the side's name.
void keep_state(Workbench& bench, const std::string& side, const Json& state) {
  if (!state.contains("sm_clock_mhz")) return;
  Json& clocks = bench.clocks[side];
  clocks["sm_clock_mhz"].push_back(state["sm_clock_mhz"]);
  clocks["memory_clock_mhz"].push_back(state.value("memory_clock_mhz", 0));
  clocks["power_w"].push_back(state.value("power_w", 0.0));
  clocks["throttle_reasons"].push_back(state.value("throttle_reasons", uint64_t{0}));
}

/// What lies in the outputs of a block; correct without a look where a test has switched that off.
Finding verify_outputs(Workbench& bench, const Runner& runner, const std::vector<int>& sets, bool timed) {
  if (!bench.switches.timed_outputs) {
    Finding unseen;
    unseen.correct = true;
    return unseen;
  }
  const Contender& side = *runner.side;
  return bench.oracle.verify(side.name, sets, side.shape.unwritten, side.shape.rounds_to_e4m3, timed);
}

/// One sample: prepare, run, verify. False if the side is out.
bool take_sample(Workbench& bench, Runner& runner, uint64_t seed, bool counted) {
  Contender& side = *runner.side;
  bench.oracle.prepare(side.name, runner.filled, "mixture", seed, true);
  double elapsed_us = 0;
  if (const auto failure =
          side.worker->run(runner.sets, runner.limit_s, elapsed_us, counted, false, runner.plans ? "both" : "run"))
    return disqualify(runner, failure->verdict, failure->reason), false;
  bench.worker_s += elapsed_us * 1e-6;
  const Finding finding = verify_outputs(bench, runner, runner.filled, true);
  if (!finding.correct) return disqualify(runner, finding.verdict, finding.reason), false;
  const auto n = static_cast<double>(runner.sets.size());
  runner.call_us = std::max(0.0, elapsed_us - bench.host_overhead_us) / n;
  if (!counted) return true;
  side.result.samples_us.push_back(runner.call_us);
  keep_state(bench, side.name, finding.state);
  return true;
}

/// What planning for given lengths takes by itself, a call.
void time_planning(Workbench& bench, Runner& runner, uint64_t seed) {
  Contender& side = *runner.side;
  std::vector<double> samples;
  for (int i = 0; i <= kPlanningSamples; ++i) {
    double elapsed_us = 0;
    bench.oracle.prepare(side.name, runner.filled, "mixture", base::mix64(seed, static_cast<uint64_t>(i)), true);
    if (const auto failure = side.worker->run(runner.sets, runner.limit_s, elapsed_us, false, false, "plan"))
      return disqualify(runner, failure->verdict, failure->reason + " (planning)");
    const auto n = static_cast<double>(runner.sets.size());
    if (i > 0) samples.push_back(std::max(0.0, elapsed_us - bench.host_overhead_us) / n);  // the first warms up
  }
  side.result.lengths_us = stats::median(samples);
}

/// Calls one by one, by our clock: what a caller without graphs pays. Outputs are verified as ever.
void time_eagerly(Workbench& bench, Runner& runner, uint64_t seed) {
  Contender& side = *runner.side;
  std::vector<double> samples;
  const std::vector<int> sets(runner.sets.begin(), runner.sets.begin() + std::min(kEagerCalls, runner.sets.size()));
  const std::vector<int>& filled = bench.warm ? runner.filled : sets;
  for (int i = 0; i <= kEagerSamples; ++i) {
    double elapsed_us = 0;
    bench.oracle.prepare(side.name, filled, "mixture", base::mix64(seed, static_cast<uint64_t>(i)), true);
    if (const auto failure =
            side.worker->run(sets, runner.limit_s, elapsed_us, false, true, runner.plans ? "both" : "run"))
      return disqualify(runner, failure->verdict, failure->reason + " (eager)");
    const Finding finding = verify_outputs(bench, runner, filled, false);
    if (!finding.correct) return disqualify(runner, finding.verdict, finding.reason + " (eager)");
    const auto n = static_cast<double>(sets.size());
    if (i > 0) samples.push_back(std::max(0.0, elapsed_us - bench.asking_us) / n);  // the first warms up
  }
  side.result.host_us = stats::median(samples);
}

/// Lays out the block's sets. The first estimate of a call comes from one call on one set.
bool open_runner(Workbench& bench, const ProblemInfo& problem, Runner& runner) {
  Contender& side = *runner.side;
  runner.sets = runner.filled = {0};
  if (!take_sample(bench, runner, base::mix64(bench.seed, 99), false)) return false;
  const double call_us = runner.call_us;
  if (bench.warm) {
    runner.sets.assign(static_cast<size_t>(warm_calls(call_us)), 0);
    runner.limit_s = std::max(10.0, 30 * call_us * static_cast<double>(runner.sets.size()) * 1e-6);
    return take_sample(bench, runner, base::mix64(bench.seed, 100), false);
  }
  const int count = calls_of_block(bench, problem, call_us);
  runner.limit_s = std::max(10.0, 30 * call_us * count * 1e-6);
  // The worker lets go of the old buffers before they are freed.
  auto failure = side.worker->unmap();
  Layout layout = bench.oracle.lay_out(side.name, count, side.shape.scratch_bytes, side.shape.state_bytes,
                                       side.shape.schedule_bytes);
  if (!failure) failure = side.worker->map(layout);
  layout.close_fds();
  if (failure) return disqualify(runner, failure->verdict, failure->reason), false;
  runner.sets.resize(static_cast<size_t>(count));
  std::iota(runner.sets.begin(), runner.sets.end(), 0);
  runner.filled = runner.sets;
  return take_sample(bench, runner, base::mix64(bench.seed, 100), false);  // warm-up
}

/// Half the width of the widest interval of log ratios against the first side.
double widest_half_width(const std::vector<Runner>& runners) {
  double widest = 0;
  for (size_t i = 1; i < runners.size(); ++i) {
    const auto& mine = runners[0].side->result.samples_us;
    const auto& theirs = runners[i].side->result.samples_us;
    const size_t n = std::min(mine.size(), theirs.size());
    if (n < 2) return INFINITY;
    std::vector<double> logs;
    for (size_t k = 0; k < n; ++k) logs.push_back(std::log(theirs[k] / mine[k]));
    const auto interval = stats::paired_interval(logs);
    widest = std::max(widest, 0.5 * (interval.high - interval.low));
  }
  return widest;
}

}  // namespace

double empty_block_us(WorkerClient& worker) {
  std::vector<double> samples;
  for (int i = 0; i < 15; ++i) {
    double elapsed_us = 0;
    if (worker.run({}, 10, elapsed_us)) return 0;
    samples.push_back(elapsed_us);
  }
  return stats::median(samples);
}

void time_scenario(Workbench& bench, const core::Scenario& scenario, const ProblemInfo& problem) {
  std::vector<Runner> runners;
  bench.clocks = Json::object();
  for (auto& side : bench.contenders) {
    if (side.result.verdict != core::Verdict::kCorrect) continue;
    side.result.samples_us.clear();
    Runner runner;
    runner.side = &side;
    runner.plans = problem.has_lengths && side.worker->has_plan_lengths();
    if (open_runner(bench, problem, runner)) runners.push_back(std::move(runner));
  }
  const int64_t start = base::monotonic_ns();
  uint64_t sample = base::mix64(bench.seed, 1000 + static_cast<uint64_t>(scenario.id));
  for (int round = 0; round < bench.effort.max_rounds && !runners.empty() && !bench.cancelled(); ++round) {
    // A B C … C B A: drift hits everyone alike.
    for (const bool backwards : {false, true}) {
      for (size_t k = 0; k < runners.size(); ++k) {
        Runner& runner = runners[backwards ? runners.size() - 1 - k : k];
        if (runner.side->result.verdict == core::Verdict::kCorrect) take_sample(bench, runner, ++sample, true);
      }
    }
    std::erase_if(runners, [](const Runner& r) { return r.side->result.verdict != core::Verdict::kCorrect; });
    const double spent_s = static_cast<double>(base::monotonic_ns() - start) * 1e-9;
    const double per_round_s = spent_s / (round + 1);
    if (round + 1 < bench.effort.min_rounds) continue;
    if (widest_half_width(runners) <= bench.effort.target_half_width ||
        spent_s + per_round_s > bench.effort.timing_budget_s)
      break;
  }
  for (auto& runner : runners) {
    if (runner.plans) time_planning(bench, runner, ++sample);
    if (bench.on_gpu && runner.side->name != "aa") time_eagerly(bench, runner, ++sample);
    if (runner.side->result.verdict != core::Verdict::kCorrect) continue;
    runner.side->result.time_us = stats::median(runner.side->result.samples_us);
  }
}

}  // namespace ks::evaluator
