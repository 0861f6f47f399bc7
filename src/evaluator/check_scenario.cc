// Correctness of one scenario: each side gets the same secret inputs, each time under another symmetry, and what it
// leaves in poisoned, fenced outputs is compared with the oracle's answer while the worker is frozen.
#include <algorithm>

#include "base/clock.h"
#include "base/hash.h"
#include "evaluator/judge_scenario.h"

namespace ks::evaluator {
namespace {

constexpr double kFirstCallLimitS = 60;
constexpr double kManyFlops = 3e8;  // from here further inputs are compared on sampled rows
constexpr int64_t kSampledRows = 256;
constexpr uint64_t kStateBytesMax = 65536;  // the ABI's KS_STATE_BYTES_MAX

/// One set of inputs that every side is tried on.
struct Trial {
  std::string slot, recipe;
  bool nan_slack = false;  ///< slack that nobody may read holds NaN: candidates only
  bool candidate_only = false;
};

void fail(core::Side& side, const Failure& failure) {
  side.verdict = failure.verdict;
  side.reason = failure.reason;
}

/// The trials of a scenario: the timed mixture first, then the rest in an order that nobody can know beforehand.
std::vector<Trial> plan_trials(const ProblemInfo& problem, uint64_t seed) {
  std::vector<Trial> trials;
  for (size_t r = 1; r < problem.recipes.size(); ++r) trials.push_back({problem.recipes[r], problem.recipes[r]});
  trials.push_back({"slack", problem.recipes[0], true, true});
  base::Random random(seed);
  for (size_t i = trials.size(); i > 1; --i) std::swap(trials[i - 1], trials[random.below(i)]);
  trials.insert(trials.begin(), {"mixture", problem.recipes[0]});
  return trials;
}

/// Gets a side ready: shape, buffers, mapping. False if it cannot take part.
bool open_side(Workbench& bench, Contender& side, const core::Scenario& scenario, const ProblemInfo& problem) {
  side.result = core::Side{};
  if (side.known) return false;
  if (const auto failure = side.worker->shape(scenario, problem, side.shape)) return fail(side.result, *failure), false;
  side.result.plan_us = side.shape.plan_us;
  if (!side.shape.supported) {
    side.result.verdict = core::Verdict::kUnsupported;
    side.result.reason = side.shape.reason;
    return false;
  }
  if (side.shape.state_bytes > kStateBytesMax || side.shape.scratch_bytes > bench.effort.memory_limit_bytes) {
    fail(side.result,
         {core::Verdict::kCrash,
          fmt::format("asked for {} bytes of scratch and {} of state; at most {} and {}", side.shape.scratch_bytes,
                      side.shape.state_bytes, bench.effort.memory_limit_bytes, kStateBytesMax)});
    return false;
  }
  Layout layout =
      bench.oracle.lay_out(side.name, 2, side.shape.scratch_bytes, side.shape.state_bytes, side.shape.schedule_bytes);
  const auto failure = side.worker->map(layout);
  layout.close_fds();
  if (failure) return fail(side.result, *failure), false;
  side.result.verdict = core::Verdict::kCorrect;
  if (!side.shape.unwritten.empty())
    side.result.reason =
        fmt::format("judged without {}, which it does not give", fmt::join(side.shape.unwritten, ", "));
  if (side.shape.rounds_to_e4m3)
    side.result.reason = "rounds its query to e4m3 (counted), judged by the limits of e4m3";
  return true;
}

/// One call on one set, judged. Returns the seconds that the call took.
double try_inputs(Workbench& bench, Contender& side, const Trial& trial, int set, uint64_t seed, bool lengths) {
  bench.oracle.prepare(side.name, {set}, trial.slot, seed);
  double elapsed_us = 0;
  std::optional<Failure> failure;
  if (lengths && side.worker->has_plan_lengths()) failure = side.worker->plan_lengths(set, elapsed_us);
  if (!failure) failure = side.worker->run({set}, kFirstCallLimitS, elapsed_us);
  bench.worker_s += elapsed_us * 1e-6;
  if (failure) {
    fail(side.result, *failure);
    side.result.reason += fmt::format(" (inputs: {})", trial.recipe);
    return elapsed_us * 1e-6;
  }
  const Finding finding = bench.oracle.verify(side.name, {set}, side.shape.unwritten, side.shape.rounds_to_e4m3);
  if (!side.result.error || finding.error.worst > side.result.error->worst || !finding.correct)
    side.result.error = finding.error;
  if (!finding.correct) {
    side.result.verdict = finding.verdict;
    side.result.reason = fmt::format("{} (inputs: {})", finding.reason, trial.recipe);
  }
  return elapsed_us * 1e-6;
}

/// The same inputs twice, at other addresses, ought to give the same bits; what reads memory nobody wrote differs.
void try_twice(Workbench& bench, Contender& side, bool lengths) {
  const Trial again{"mixture", "the same inputs twice"};
  for (const int set : {0, 1})
    if (side.result.verdict == core::Verdict::kCorrect) try_inputs(bench, side, again, set, 0, lengths);
  if (side.result.verdict != core::Verdict::kCorrect) return;
  if (side.worker->implementation().is_candidate && !bench.oracle.same_outputs(side.name, 0, 1)) {
    // Allowed (atomics reorder sums), but said: both outputs were right.
    side.result.reason = "two calls on the same inputs differ in some bits";
  }
}

}  // namespace

void check_scenario(Workbench& bench, const core::Scenario& scenario, const ProblemInfo& problem) {
  const auto trials = plan_trials(problem, base::mix64(bench.seed, static_cast<uint64_t>(scenario.id)));
  bench.oracle.solve("mixture", problem.recipes[0], base::mix64(bench.seed, 1), false, 0);
  double spent_s = 0;
  for (auto& side : bench.contenders) {
    if (!open_side(bench, side, scenario, problem)) continue;
    spent_s += try_inputs(bench, side, trials[0], 0, base::mix64(bench.seed, 2), problem.has_lengths);
  }
  const double round_s = spent_s;
  for (size_t t = 1; t < trials.size() && bench.switches.hostile_inputs; ++t) {
    const Trial& trial = trials[t];
    // The first two are always tried; the others while the budget lasts, so that a slow side does not hold up a run.
    if (t > 2 && spent_s + round_s > bench.effort.check_budget_s) break;
    if (bench.cancelled()) return;
    bench.oracle.solve(trial.slot, trial.recipe, base::mix64(bench.seed, 16 + t), trial.nan_slack,
                       problem.flops > kManyFlops ? kSampledRows : 0);
    for (auto& side : bench.contenders) {
      if (side.result.verdict != core::Verdict::kCorrect) continue;
      if (trial.candidate_only && !side.worker->implementation().is_candidate) continue;
      spent_s += try_inputs(bench, side, trial, 0, base::mix64(bench.seed, 32 + t), problem.has_lengths);
    }
    bench.oracle.forget(trial.slot);
  }
  for (auto& side : bench.contenders)
    if (side.result.verdict == core::Verdict::kCorrect && round_s < bench.effort.check_budget_s)
      try_twice(bench, side, problem.has_lengths);
}

}  // namespace ks::evaluator
