// What came of an experiment: a figure a cell, paired comparisons, and the record of both (schema
// kernelseek.experiment/1, docs/formats/experiment.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/plan.h"
#include "stats/paired.h"

namespace ks::experiment {

/// What one run gave. Logs are natural; of geometric means against the fastest baseline.
struct CellResult {
  std::string task, arm;
  uint64_t seed = 0;
  int evaluations = 0, questions = 0, answered = 0;
  std::string reason, decision;
  std::optional<double> heldout_log, heldout_log_low, heldout_log_high;  ///< of the final version, evaluated afresh
  int heldout_correct = 0, heldout_total = 0;
  std::vector<std::optional<double>> curve;  ///< best log so far after each evaluation; nothing until one is defined
  double wall_s = 0;
  std::string candidate_hash;

  /// Mean of the curve over its defined part; nothing where there is none.
  std::optional<double> area() const;
};

Json to_json(const CellResult& cell);
/// Throws ks::Error naming `origin` and the key.
CellResult cell_from_json(const Json& json, const std::string& origin);

/// Two arms over the blocks that both finished.
struct Comparison {
  std::string task;     ///< "" all tasks
  std::string outcome;  ///< "heldout" or "area"
  std::string control;
  stats::PairedTest test;  ///< of log(treatment) - log(control)
  int without_figure = 0;  ///< blocks in which one of the two has none
};

/// The treatment against every other arm, on both outcomes, for each task and over all.
std::vector<Comparison> compare(const Plan& plan, const std::vector<CellResult>& cells);

/// True where every cell used as many evaluations as the budget allows.
bool has_equal_evaluations(const Plan& plan, const std::vector<CellResult>& cells);

Json record_of(const Plan& plan, const Json& frozen, const std::vector<CellResult>& cells);

/// The comparisons and the arms as people read them.
std::string result_text(const Plan& plan, const std::vector<CellResult>& cells);

inline constexpr const char* kExperimentSchema = "kernelseek.experiment/1";

}  // namespace ks::experiment
