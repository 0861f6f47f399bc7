// The spine of the evaluator. Order: the cheapest refusal first.
#include "evaluator/evaluate.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "evaluator/baselines.h"
#include "evaluator/bound.h"
#include "evaluator/build.h"
#include "evaluator/candidate.h"
#include "evaluator/inspect.h"
#include "evaluator/judge_scenario.h"
#include "evaluator/operators.h"
#include "evaluator/provenance.h"
#include "evaluator/resume.h"
#include "evaluator/score.h"

namespace ks::evaluator {
namespace {

/// What the stages hand on to each other.
struct Evaluator {
  const Request& request;
  core::Evaluation record;
  OperatorFolder the_operator;
  core::Grid grid;
  std::vector<core::Scenario> scenarios;
  std::vector<Contender> contenders;
  std::vector<Baseline> groups;  ///< baselines that are the best of others
  std::vector<double> aa_logs;
  CarriedRatios carried;
  int threads = 1;
  int64_t start_ns = base::monotonic_ns();
  int64_t judging_ns = start_ns;  ///< when everything was built: from here the time budget runs

  double elapsed_s() const { return static_cast<double>(base::monotonic_ns() - start_ns) * 1e-9; }
  double judging_s() const { return static_cast<double>(base::monotonic_ns() - judging_ns) * 1e-9; }
  bool cancelled() const { return request.cancel != nullptr && request.cancel->load(); }
  bool on(const char* counter) const {
    const auto& off = request.counters_off;
    return std::find(off.begin(), off.end(), counter) == off.end();
  }
  void tell(const std::string& stage, const std::string& scenario, int index) const {
    if (request.progress) request.progress({stage, scenario, index, static_cast<int>(scenarios.size()), elapsed_s()});
  }
};

/// Every stage runs through this door: it is timed, and its time is in the record.
template <typename Body>
auto run_stage(Evaluator& evaluator, const std::string& name, const Body& body) {
  struct Timer {
    Evaluator& evaluator;
    const std::string& name;
    int64_t start = base::monotonic_ns();
    ~Timer() { evaluator.record.stage_s[name] += static_cast<double>(base::monotonic_ns() - start) * 1e-9; }
  } timer{evaluator, name};
  return body();
}

bool is_baseline_name(const std::string& candidate) {
  return candidate.starts_with("baseline:");
}

/// Operator, grid and scenarios of the request.
void choose_scenarios(Evaluator& evaluator, const std::string& operator_name) {
  const Request& request = evaluator.request;
  evaluator.the_operator = find_operator(operator_name);
  evaluator.grid = load_grid(evaluator.the_operator, request.grid);
  evaluator.scenarios =
      request.filter.empty() ? evaluator.grid.scenarios : core::filter_scenarios(evaluator.grid, request.filter);
  auto& record = evaluator.record;
  record.operator_name = evaluator.the_operator.name;
  record.grid_name = evaluator.grid.name;
  record.grid_hash = evaluator.grid.hash;
  record.device = request.device;
  record.timing = request.check_only ? "none" : request.timing;
}

/// Builds and inspects the candidate. False: refused, and the record says why.
bool admit_candidate(Evaluator& evaluator, Implementation& implementation) {
  const Request& request = evaluator.request;
  core::Evaluation& record = evaluator.record;
  record.candidate_path = request.candidate;
  if (is_baseline_name(request.candidate)) {
    const Baseline baseline = find_baseline(request.candidate.substr(9), request.device);
    if (baseline.kind == "group")
      throw Error("{} is the best of {}; judge one of them: baseline:{}", request.candidate,
                  fmt::join(baseline.members, ", "), baseline.members.front());
    choose_scenarios(evaluator, request.operator_name.empty() ? baseline.operators.front() : request.operator_name);
    implementation = open_baseline(baseline, evaluator.threads);
    implementation.name = "candidate";
    return true;
  }
  const Candidate candidate = load_candidate(request.candidate, request.operator_name);
  choose_scenarios(evaluator, candidate.operator_name);
  implementation = {.name = "candidate", .is_candidate = true};
  if (!candidate.command.empty()) {
    implementation.command = candidate.command;
    if (evaluator.on("sandbox"))
      implementation.command.insert(implementation.command.begin(),
                                    (base::executable_folder() / "kernelseek-confine").string());
    implementation.folder = candidate.folder;
    return true;
  }
  evaluator.tell("build", "", 0);
  const Build build = run_stage(evaluator, "build", [&] {
    return build_candidate(candidate, request.device, evaluator.threads, request.prebuilt);
  });
  record.candidate_hash = build.hash;
  record.build = {{"log", build.log},
                  {"cached", build.cached},
                  {"seconds", build.seconds},
                  {"compiler", build.compiler},
                  {"source_hash", build.source_hash}};
  if (build.prebuilt) record.build["prebuilt"] = true;
  if (!build.ok) {
    record.outcome = "build_failed";
    record.outcome_reason = build.log;
    return false;
  }
  implementation.shared_object = build.shared_object;
  const Inspection inspection =
      run_stage(evaluator, "inspect", [&] { return inspect_binary(build.shared_object, candidate); });
  record.build["inspection"] = inspection.findings;
  if (inspection.refused && evaluator.on("inspect")) {
    record.outcome = "refused";
    record.outcome_reason = inspection.reason;
    return false;
  }
  return true;
}

/// The baselines of the request, members of groups included. Throws where a named one cannot take part.
std::vector<Baseline> chosen_baselines(const Evaluator& evaluator) {
  const auto& names = evaluator.request.baselines;
  const auto known = known_baselines(evaluator.request.device);
  const auto is_named = [&](const Baseline& baseline) {
    if (std::find(names.begin(), names.end(), baseline.name) != names.end()) return true;
    return std::any_of(known.begin(), known.end(), [&](const Baseline& group) {
      return std::find(group.members.begin(), group.members.end(), baseline.name) != group.members.end() &&
             std::find(names.begin(), names.end(), group.name) != names.end();
    });
  };
  std::vector<Baseline> result;
  for (const auto& baseline : known) {
    const bool named = is_named(baseline);
    const bool fits = std::find(baseline.operators.begin(), baseline.operators.end(), evaluator.the_operator.name) !=
                      baseline.operators.end();
    const std::string missing = missing_parts(baseline);
    if (named && !missing.empty())
      throw Error("baseline {} is not installed ({}); install it with: kernelseek baseline install {}", baseline.name,
                  missing, baseline.name);
    if (named && !fits) throw Error("baseline {} does not compute {}", baseline.name, evaluator.the_operator.name);
    if (named || (names.empty() && baseline.by_default && fits && missing.empty())) result.push_back(baseline);
  }
  return result;
}

/// The candidate's worker, its twin for the A/A test, and one for each baseline.
void gather_contenders(Evaluator& evaluator, const Implementation& candidate) {
  const Request& request = evaluator.request;
  const auto add = [&](Implementation implementation, const std::string& name, bool sandboxed) {
    implementation.name = name;
    evaluator.contenders.push_back({name,
                                    std::make_unique<WorkerClient>(implementation, request.device, evaluator.threads,
                                                                   sandboxed, evaluator.on("freeze")),
                                    {},
                                    {}});
  };
  const bool sandboxed = evaluator.on("sandbox");
  add(candidate, "candidate", sandboxed);
  if (request.aa && !request.check_only) add(candidate, "aa", sandboxed);
  // Baselines in Python libraries start threads and compile when a shape is new: they are not sealed, only native ones.
  for (const auto& baseline : chosen_baselines(evaluator)) {
    if (baseline.kind == "group") {
      evaluator.groups.push_back(baseline);
      continue;
    }
    add(run_stage(evaluator, "build_baselines", [&] { return open_baseline(baseline, evaluator.threads); }),
        baseline.name, baseline.kind == "native");
  }
  for (const auto& name : request.baselines) {
    if (!name.starts_with("candidate:")) {
      if (name != "none") find_baseline(name, request.device);
      continue;
    }
    const Candidate other = load_candidate(name.substr(10), evaluator.the_operator.name);
    const Build build = run_stage(evaluator, "build_baselines",
                                  [&] { return build_candidate(other, request.device, evaluator.threads); });
    if (!build.ok) throw Error("{} does not compile:\n{}", name, build.log);
    add({.shared_object = build.shared_object, .is_candidate = true}, name, sandboxed);
  }
}

/// The cost of asking, the same for everyone: the smallest over the sides, so that none can inflate it.
double measure_overhead(Evaluator& evaluator) {
  double least = INFINITY;
  for (auto& side : evaluator.contenders) side.worker->begin_start();
  for (auto& side : evaluator.contenders)
    if (!side.worker->start())
      if (const double us = empty_block_us(*side.worker); us > 0) least = std::min(least, us);
  return std::isfinite(least) ? least : 0;
}

/// How much of the budget the next scenario may use.
Effort effort_of(const Evaluator& evaluator, size_t index) {
  Effort effort;
  if (evaluator.request.time_budget_s <= 0) return effort;
  const auto left = static_cast<double>(evaluator.scenarios.size() - index);
  const double share = std::max(0.05, (evaluator.request.time_budget_s - evaluator.judging_s()) / left);
  effort.check_budget_s = std::min(effort.check_budget_s, 0.3 * share);
  effort.timing_budget_s = std::min(effort.timing_budget_s, 0.5 * share);
  if (share < 1.0) effort.target_half_width = 0.02;
  return effort;
}

/// Baselines that an earlier record has, and groups of baselines.
void add_known_and_groups(Evaluator& evaluator, core::ScenarioResult& result) {
  if (const auto* known = evaluator.request.resume ? known_result(*evaluator.request.resume, result.name) : nullptr)
    merge_baselines(*known, result, evaluator.carried);
  for (const auto& group : evaluator.groups) {
    const core::Side best = best_member(group.members, result.baselines);
    result.baselines[group.name] = best;
    auto& ratios = evaluator.carried[result.name];
    // The ratio of a member that was timed with an earlier record is the group's too.
    const auto known = ratios.find(best.reason.substr(0, best.reason.find(':')));
    if (known != ratios.end())
      ratios[group.name] = known->second;
    else
      ratios.erase(group.name);
  }
}

/// Moves what the sides found into the record.
void keep_results(Evaluator& evaluator, const core::Scenario& scenario, const ProblemInfo& problem) {
  core::ScenarioResult result;
  result.id = scenario.id;
  result.name = scenario.name;
  result.category = scenario.category;
  result.values = scenario.values;
  result.flops = problem.flops;
  result.bytes = problem.bytes;
  result.bound_us = bound_us(evaluator.request.device, evaluator.threads, problem);
  const core::Side* twin = nullptr;
  for (auto& side : evaluator.contenders) {
    if (side.result.time_us && *side.result.time_us < *result.bound_us && evaluator.on("bound")) {
      side.result.reason = fmt::format("{:.2f} us is below the bound of {:.2f} us that the device's peak rates set",
                                       *side.result.time_us, *result.bound_us);
      side.result.verdict = core::Verdict::kSuspect;
    }
    if (side.known) continue;
    if (side.name == "candidate")
      result.candidate = side.result;
    else if (side.name == "aa")
      twin = &side.result;
    else
      result.baselines[side.name] = side.result;
  }
  add_known_and_groups(evaluator, result);
  if (twin != nullptr && twin->verdict == core::Verdict::kCorrect && !twin->samples_us.empty() &&
      !result.candidate.samples_us.empty()) {
    core::ScenarioResult pair = result;
    pair.baselines = {{"aa", *twin}};
    score_scenario(pair);
    if (pair.ratio.contains("aa")) evaluator.aa_logs.push_back(std::fabs(std::log(pair.ratio["aa"].value)));
  }
  evaluator.record.scenarios.push_back(std::move(result));
}

/// Takes a scenario from the record that is resumed, as far as it is there. True: nothing of it is left to do.
bool take_known(Evaluator& evaluator, const core::Scenario& scenario) {
  const auto* known = evaluator.request.resume ? known_result(*evaluator.request.resume, scenario.name) : nullptr;
  bool complete = known != nullptr;
  for (auto& side : evaluator.contenders) {
    const bool is_baseline = side.name != "candidate" && side.name != "aa";
    side.known = known != nullptr && is_baseline && knows_baseline(*known, side.name);
    complete &= side.known || !is_baseline;
  }
  if (complete) carry_whole(*known, evaluator.record, evaluator.carried);
  return complete;
}

/// A scenario that nothing was found out about.
void skip_scenario(Evaluator& evaluator, const core::Scenario& scenario, const std::string& reason) {
  const auto* known = evaluator.request.resume ? known_result(*evaluator.request.resume, scenario.name) : nullptr;
  if (known != nullptr) return carry_whole(*known, evaluator.record, evaluator.carried);
  core::ScenarioResult skipped{.id = scenario.id, .name = scenario.name, .category = scenario.category};
  skipped.candidate.reason = reason;
  skipped.values = scenario.values;
  evaluator.record.scenarios.push_back(std::move(skipped));
}

/// Checks and times one scenario. What does not fit into memory is not run; the rest goes on.
void judge_scenario(Evaluator& evaluator, Workbench& bench, const core::Scenario& scenario, int index) {
  try {
    evaluator.tell("check", scenario.name, index);
    const ProblemInfo problem = bench.oracle.problem(scenario);
    run_stage(evaluator, "check", [&] { check_scenario(bench, scenario, problem); });
    // From here the outputs of the sides that are left are right; only speed is open.
    evaluator.tell("time", scenario.name, index);
    if (!evaluator.request.check_only) run_stage(evaluator, "time", [&] { time_scenario(bench, scenario, problem); });
    keep_results(evaluator, scenario, problem);
    if (!bench.clocks.empty()) evaluator.record.provenance["clocks"][scenario.name] = bench.clocks;
  } catch (const OutOfMemory& e) {
    skip_scenario(evaluator, scenario, e.what());
  }
  for (auto& side : evaluator.contenders) side.worker->unmap();
}

void judge_scenarios(Evaluator& evaluator) {
  evaluator.judging_ns = base::monotonic_ns();
  OracleClient oracle(evaluator.the_operator.shared_object.string(), evaluator.request.device, evaluator.threads,
                      evaluator.request.counters_off);
  Workbench bench{oracle, evaluator.contenders, {}};
  bench.seed = base::secret_seed();
  bench.on_gpu = evaluator.request.device == "cuda";
  bench.switches = {evaluator.on("hostile_inputs"), evaluator.on("timed_outputs")};
  bench.cancel = evaluator.request.cancel;
  bench.host_overhead_us = run_stage(evaluator, "start", [&] { return measure_overhead(evaluator); });
  bench.asking_us = bench.host_overhead_us;
  bench.warm = evaluator.request.timing == "warm";
  if (bench.on_gpu) bench.host_overhead_us = 0;  // the device's timer does not count it
  evaluator.record.provenance["host_overhead_us"] = bench.host_overhead_us;
  evaluator.record.provenance["device"] = oracle.device();
  if (evaluator.request.resume) check_resumable(*evaluator.request.resume, evaluator.record);
  for (size_t i = 0; i < evaluator.scenarios.size(); ++i) {
    const core::Scenario& scenario = evaluator.scenarios[i];
    if (take_known(evaluator, scenario)) continue;
    const bool out_of_time =
        evaluator.request.time_budget_s > 0 && evaluator.judging_s() > evaluator.request.time_budget_s;
    if (out_of_time || evaluator.cancelled()) {
      skip_scenario(evaluator, scenario, evaluator.cancelled() ? "interrupted" : "the time budget was spent");
      continue;
    }
    bench.effort = effort_of(evaluator, i);
    judge_scenario(evaluator, bench, scenario, static_cast<int>(i));
  }
  double in_oracle = 0;
  for (const auto& [what, seconds] : oracle.answering_s()) {
    evaluator.record.stage_s["oracle_" + what] = seconds;
    in_oracle += seconds;
  }
  evaluator.record.stage_s["in_oracle"] = in_oracle;
  evaluator.record.stage_s["in_workers"] = bench.worker_s;
  evaluator.record.provenance["protections"] = evaluator.contenders.front().worker->protections();
  for (const auto& side : evaluator.contenders)
    if (!side.worker->versions().empty()) evaluator.record.provenance["versions"][side.name] = side.worker->versions();
}

}  // namespace

core::Evaluation evaluate(const Request& request) {
  Evaluator evaluator{request};
  core::Evaluation& record = evaluator.record;
  record.started = base::unix_seconds();
  // The seeds lie in this process: none of this user's other processes may read its memory.
  ::prctl(PR_SET_DUMPABLE, 0);
  evaluator.threads = request.threads > 0 ? request.threads : static_cast<int>(std::thread::hardware_concurrency());
  record.provenance = describe_host(request.device, evaluator.threads);
  if (!request.counters_off.empty()) record.provenance["counters_off"] = request.counters_off;
  // Compile in a clean folder and look at what came out: most mistakes end here.
  Implementation candidate;
  if (request.timing != "blocks" && request.timing != "warm")
    throw Error("--timing {}: it is \"blocks\" or \"warm\"", request.timing);
  const bool admitted = admit_candidate(evaluator, candidate);
  if (admitted) {
    // Everybody gets a process of their own; none of them holds an answer or a clock that counts.
    gather_contenders(evaluator, candidate);
    // Correctness first, on every scenario; what is right is timed in turns.
    judge_scenarios(evaluator);
    record.outcome = "judged";
  }
  // Nothing is measured from here on.
  if (request.resume && record.outcome == "judged") keep_the_rest(*request.resume, record, evaluator.carried);
  score_evaluation(record, evaluator.aa_logs, evaluator.carried);
  if (request.resume && !record.summary.aa_median) {
    record.summary.aa_median = request.resume->summary.aa_median;
    record.summary.aa_p95 = request.resume->summary.aa_p95;
  }
  if (evaluator.cancelled()) record.outcome_reason = "interrupted; go on with --resume";
  record.wall_s = evaluator.elapsed_s();
  return record;
}

}  // namespace ks::evaluator
