#include "experiment/run_experiment.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "evaluator/operators.h"
#include "run/run_task.h"
#include "steering/bank.h"
#include "trace/trace_reader.h"

namespace ks::experiment {
namespace {
namespace fs = base::fs;

/// What must not change between the first cell and the last.
Json frozen_of(const Plan& plan) {
  return {{"plan_hash", plan_hash(plan)}, {"bank_hash", steering::load_bank(steering::bank_folder()).hash}};
}

/// Makes the folder, or checks that the one that is there belongs to this plan and this bank.
Json freeze(const Plan& plan, const ExperimentOptions& options) {
  const fs::path folder = options.out, file = folder / "frozen.json";
  const Json now = frozen_of(plan);
  if (!fs::exists(file)) {
    if (options.is_resumed)
      throw Error("{}: there is no experiment to go on with; leave out --resume to begin it", folder.string());
    base::make_folder(folder / "cells");
    base::write_file_atomically(folder / "plan.toml", plan.text);
    base::write_file_atomically(file, now.dump(1) + "\n");
    return now;
  }
  if (!options.is_resumed)
    throw Error("{}: an experiment lies there already; go on with --resume, or choose another folder with --out",
                folder.string());
  const Json before = base::read_json_file(file.string());
  for (const auto& [key, value] : now.items())
    if (base::value_or<std::string>(before, key.c_str(), "") != value.get<std::string>())
      throw Error("{}: {} changed since the experiment began: {} then, {} now; its cells cannot be compared any more",
                  file.string(), key == "bank_hash" ? "the question bank" : "the plan or what it names",
                  base::value_or<std::string>(before, key.c_str(), "?").substr(0, 12),
                  value.get<std::string>().substr(0, 12));
  return before;
}

/// The run of a cell that was begun and not finished; "" where there is none.
std::string unfinished_run(const fs::path& cell) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(cell / "runs", ignored))
    if (fs::exists(entry.path() / "trace.jsonl")) return entry.path().string();
  return "";
}

run::RunResult run_cell(const Plan& plan, const Cell& cell, const fs::path& folder, const ExperimentOptions& options,
                        const run::Workbench& bench) {
  base::make_folder(folder);
  run::RunOptions run;
  run.resume = unfinished_run(folder);
  if (run.resume.empty()) {
    fs::remove_all(folder / "runs");
    base::write_file_atomically(folder / "task.toml", run::task_text(cell_task(plan, cell)));
    run.task = (folder / "task.toml").string();
  }
  run.runs = (folder / "runs").string();
  run.cancel = options.cancel;
  run.is_quiet = true;
  std::FILE* log = std::fopen((folder / "log").c_str(), "a");
  if (log == nullptr) throw Error("{}: cannot be written", (folder / "log").string());
  run.out = log;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer(log, std::fclose);
  return run::run_task(run, bench);
}

std::optional<double> log_of(const std::map<std::string, std::optional<double>>& figures) {
  const auto found = figures.find("fastest");
  if (found == figures.end() || !found->second || *found->second <= 0) return std::nullopt;
  return std::log(*found->second);
}

/// The version that lies in the run's folder at its end, on the rows that were held out.
void evaluate_final(const PlanTask& task, const std::string& run, const ExperimentOptions& options,
                    const run::Workbench& bench, CellResult& result) {
  const fs::path start = fs::path(task.task.candidate).lexically_normal();
  evaluator::Request request;
  request.candidate =
      (fs::path(run) / "work" / (start.has_filename() ? start : start.parent_path()).filename()).string();
  request.operator_name = task.task.operator_name;
  request.grid = task.heldout_grid;
  request.filter = task.heldout_filter;
  request.device = task.task.device;
  request.baselines = task.task.baselines;
  request.threads = task.task.threads;
  request.time_budget_s = task.heldout_seconds;
  request.aa = false;
  request.cancel = options.cancel;
  const core::Evaluation evaluation = bench.evaluate(request);
  result.heldout_log = log_of(evaluation.summary.geomean);
  result.heldout_log_low = log_of(evaluation.summary.geomean_low);
  result.heldout_log_high = log_of(evaluation.summary.geomean_high);
  result.heldout_correct = evaluation.summary.correct;
  result.heldout_total = evaluation.summary.total;
  result.candidate_hash = evaluation.candidate_hash;
}

/// The curve and the counts, from the run's trace. A version that is right on fewer rows is not better.
void read_course(const std::string& run, CellResult& result) {
  std::pair<int64_t, double> best = {-1, 0};
  std::optional<double> best_log;
  for (const auto& event : trace::read_trace(fs::path(run) / "trace.jsonl")) {
    result.questions += event.kind == "question";
    result.answered += event.kind == "answer" && base::value_or(event.body, "answered", false);
    if (event.kind != "evaluation" || base::value_or(event.body, "partial", false)) continue;
    const auto geomean = base::value_or(event.body, "geomean", 0.0);
    const std::pair<int64_t, double> rank = {base::value_or<int64_t>(event.body, "correct", 0), geomean};
    if (geomean > 0 && rank > best) best = rank, best_log = std::log(geomean);
    result.curve.push_back(best_log);
  }
}

/// Runs a cell to its end; nothing where it was interrupted.
std::optional<CellResult> finish_cell(const Plan& plan, const Cell& cell, const fs::path& folder,
                                      const ExperimentOptions& options, const run::Workbench& bench) {
  const int64_t began = base::monotonic_ns();
  const run::RunResult run = run_cell(plan, cell, folder, options, bench);
  if (run.decision.empty()) return std::nullopt;
  CellResult result;
  result.task = plan.tasks[cell.task].name;
  result.arm = plan.arms[cell.arm].name;
  result.seed = cell.seed;
  result.evaluations = run.evaluations;
  result.reason = run.reason;
  result.decision = run.decision;
  read_course(run.folder, result);
  evaluate_final(plan.tasks[cell.task], run.folder, options, bench, result);
  if (options.cancel != nullptr && options.cancel->load()) return std::nullopt;
  result.wall_s = static_cast<double>(base::monotonic_ns() - began) * 1e-9;
  base::write_file_atomically(folder / "result.json", to_json(result).dump(1) + "\n");
  return result;
}

}  // namespace

ExperimentResult run_experiment(const ExperimentOptions& options, const run::Workbench& bench) {
  // The plan, and a folder that belongs to it and to the bank as they are now.
  const Plan plan = read_plan(options.plan);
  const Json frozen = freeze(plan, options);
  const fs::path folder = options.out;

  // Block by block: what shifts over the hours shifts for every arm.
  std::vector<CellResult> results;
  const auto cells = cells_of(plan);
  for (const auto& cell : cells) {
    const std::string name = cell_name(plan, cell);
    const fs::path file = folder / "cells" / name / "result.json";
    if (fs::exists(file)) {
      results.push_back(cell_from_json(base::read_json_file(file.string()), file.string()));
      continue;
    }
    std::optional<CellResult> result;
    try {
      result = finish_cell(plan, cell, folder / "cells" / name, options, bench);
    } catch (const Error& e) {
      // One broken run is no reason to lose the others; --resume tries it again.
      fmt::print(options.log, "{}: broken: {}\n", name, e.what());
      continue;
    }
    if (!result) break;
    results.push_back(*result);
    fmt::print(options.log, "{}/{} {}: {} evaluations, held out {}, {:.0f} s\n", results.size(), cells.size(), name,
               result->evaluations,
               result->heldout_log ? fmt::format("{:.3f}x", std::exp(*result->heldout_log)) : "undefined",
               result->wall_s);
    std::fflush(options.log);
  }

  // Figures of what is there; a part of the cells is said to be one.
  ExperimentResult result{folder.string(), (folder / "experiment.json").string(), results.size(), cells.size(), ""};
  base::write_file_atomically(result.record, record_of(plan, frozen, results).dump(1) + "\n");
  result.text = result_text(plan, results);
  return result;
}

std::string describe_experiment(const ExperimentOptions& options) {
  const Plan plan = read_plan(options.plan);
  std::string text = fmt::format("experiment  {} ({})\n", plan.name, plan.path);
  for (const auto& task : plan.tasks) {
    const auto the_operator = evaluator::find_operator(task.task.operator_name);
    const auto count = [&](const std::string& grid_name, const std::string& filter) {
      const auto grid = evaluator::load_grid(the_operator, grid_name);
      return filter.empty() ? grid.scenarios.size() : core::filter_scenarios(grid, filter).size();
    };
    text += fmt::format("task        {}: {} scenarios of {}, held out {} of {}\n", task.name,
                        count(task.task.grid, task.task.filter), task.task.grid,
                        count(task.heldout_grid, task.heldout_filter), task.heldout_grid);
  }
  for (const auto& arm : plan.arms)
    text += fmt::format("arm         {}: questioner {}{}\n", arm.name, arm.questioner,
                        arm.name == plan.treatment ? " (compared with each of the others)" : "");
  const auto cells = cells_of(plan);
  size_t done = 0;
  for (const auto& cell : cells)
    done += fs::exists(fs::path(options.out) / "cells" / cell_name(plan, cell) / "result.json");
  return text + fmt::format(
                    "runs        {} ({} seeds), each {} evaluations{}; {} of them are done\nfolder      {}\n"
                    "plan hash   {}\nbank hash   {}\nNothing was run.\n",
                    cells.size(), plan.seeds.size(),
                    plan.budget.evaluations > 0 ? std::to_string(plan.budget.evaluations) : "any number of",
                    plan.budget.minutes > 0 ? fmt::format(" or {:g} minutes", plan.budget.minutes) : "", done,
                    options.out, plan_hash(plan), frozen_of(plan).at("bank_hash").get<std::string>());
}

}  // namespace ks::experiment
