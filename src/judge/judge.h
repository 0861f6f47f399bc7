// The judge: may this run stop? It never takes the agent's word. It evaluates the files as they lie, by itself, on the
// goal's grid and then on a hidden one (hidden_grid.h), and decides the goal on both. Undecided is not met.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evaluator/evaluate.h"
#include "goal/goal.h"

namespace ks::judge {

using Evaluate = std::function<core::Evaluation(const evaluator::Request&)>;

/// What is to be judged.
struct Case {
  std::string goal;
  evaluator::Request request;  ///< of the goal's grid: candidate, operator, grid, filter, baselines …
  std::string grid_hash;       ///< the grid's hash when the run began; "" not known
  base::fs::path folder;       ///< the judge's own: hidden grid and records; outside the agent's sight
  int hidden_scenarios = 0;
  int number = 1;  ///< of this judgement in the run; names the records
};

/// What the judge decided, with what it saw.
struct Judgement {
  goal::Decision decision = goal::Decision::kUndecided;
  std::vector<std::string> figures;            ///< the goal's comparisons with their values
  std::string reason;                          ///< where nothing could be judged
  std::optional<core::Evaluation> evaluation;  ///< on the goal's grid
  std::optional<core::Evaluation> hidden;      ///< on the hidden grid, where the first met the goal
  std::string record;                          ///< file of the first
};

/// Evaluates and decides. ks::Error from the evaluator becomes "undecided" with its reason.
Judgement judge(const Case& the_case, const Evaluate& evaluate);

/// The secret seed of a run's hidden grid, made at first use and kept in the judge's folder.
uint64_t hidden_seed(const base::fs::path& judge_folder);

/// What a refused agent is told: the figures and, if there is one, a question.
std::string refusal_text(const Judgement& judgement, const std::string& goal, const std::string& question);

}  // namespace ks::judge
