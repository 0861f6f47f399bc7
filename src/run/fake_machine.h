// For tests: a made-up machine that "evaluates" candidates with three tuned constants in a few milliseconds. Times are
// functions of the constants, so a search has something to find; the truth is known.
#pragma once

#include <cmath>

#include "agents/tune_points.h"
#include "evaluator/evaluate.h"
#include "evaluator/operators.h"

namespace ks::run {

inline constexpr const char* kFakeCandidate =
    "// kernelseek: operator=rmsnorm\n"
    "constexpr int kRows = 1;  // @tune kRows {1, 2, 4, 8, 16, 32}\n"
    "constexpr int kColumns = 1;  // @tune kColumns {1, 2, 4, 8, 16, 32}\n"
    "constexpr int kUnroll = 1;  // @tune kUnroll {1, 2, 4}\n";

/// Two scenarios: "tall" gains from rows, "wide" from columns, both a little from unrolling. Everything at its largest
/// gives a geometric mean of about 1.1.
inline core::Evaluation fake_evaluation(const evaluator::Request& request) {
  agents::Settings settings;
  for (const auto& point : agents::read_tune_points(request.candidate)) settings[point.name] = point.value;
  const auto value = [&](const char* name) { return settings.count(name) != 0 ? std::stod(settings[name]) : 1.0; };
  core::Evaluation evaluation;
  evaluation.operator_name = request.operator_name;
  evaluation.grid_name = request.grid;
  evaluation.grid_hash = evaluator::load_grid(evaluator::find_operator(request.operator_name), request.grid).hash;
  evaluation.candidate_path = request.candidate;
  evaluation.device = "fake";
  evaluation.outcome = "judged";
  evaluation.wall_s = 0.001;
  double log_sum = 0;
  for (const auto& [name, ratio] : {std::pair<std::string, double>{"tall", 0.03 * value("kRows")},
                                    std::pair<std::string, double>{"wide", 0.03 * value("kColumns")}}) {
    core::ScenarioResult result;
    result.id = static_cast<int>(evaluation.scenarios.size()) + 1;
    result.name = name;
    result.category = "fake";
    const double speed = ratio * (1 + 0.05 * value("kUnroll"));
    result.candidate.verdict = core::Verdict::kCorrect;
    result.candidate.time_us = 100 / speed;
    result.baselines["rival"].verdict = core::Verdict::kCorrect;
    result.baselines["rival"].time_us = 100;
    result.ratio["fastest"] = result.ratio["rival"] = {speed, speed * 0.99, speed * 1.01};
    log_sum += std::log(speed);
    evaluation.scenarios.push_back(result);
  }
  auto& summary = evaluation.summary;
  summary.total = summary.correct = 2;
  const double geomean = std::exp(log_sum / 2);
  summary.geomean["fastest"] = geomean;
  summary.geomean_low["fastest"] = geomean * 0.99;
  summary.geomean_high["fastest"] = geomean * 1.01;
  summary.worst["fastest"] = geomean;
  summary.parity["fastest"] = 0;
  return evaluation;
}

/// Writes a task and its candidate into `folder`; returns the task's path.
inline std::string write_fake_task(const base::fs::path& folder, const std::string& more = "",
                                   const std::string& goal = "geomean >= 1.0 and correct == all") {
  base::write_file_atomically(folder / "k.cpp", kFakeCandidate);
  base::write_file_atomically(folder / "fake.toml",
                              "name = \"fake\"\noperator = \"rmsnorm\"\ncandidate = \"k.cpp\"\ngoal = \"" + goal +
                                  "\"\nquestioner = \"none\"\n" + more);
  return (folder / "fake.toml").string();
}

}  // namespace ks::run
