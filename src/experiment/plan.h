// The plan of an experiment: tasks, arms, seeds and a budget. docs/formats/experiment.md documents every key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/task.h"

namespace ks::experiment {

/// One way of steering: what of a task it replaces.
struct Arm {
  std::string name, questioner;
  std::string agent, model, questions_file;  ///< "" as in the task
};

/// One task of the plan, with the rows on which its results count.
struct PlanTask {
  std::string name;
  run::Task task;
  std::string heldout_grid, heldout_filter;
  double heldout_seconds = 0;  ///< time budget of the final evaluation; 0: as needed
};

struct Plan {
  std::string path, name, text;
  std::vector<PlanTask> tasks;
  std::vector<Arm> arms;
  std::vector<uint64_t> seeds;
  std::string treatment;  ///< the arm that each of the others is compared with
  run::Budget budget;
};

/// One run of an experiment: an arm on a task with a seed.
struct Cell {
  size_t task = 0, arm = 0;
  uint64_t seed = 0;
};

/// Reads and checks a plan and its tasks. Throws ks::Error "file:line: … mend".
Plan read_plan(const base::fs::path& path);

/// All cells, block by block (a task and a seed); inside a block the arms come in an order drawn from the seed.
std::vector<Cell> cells_of(const Plan& plan);

/// "rmsnorm-3-bank": unique in the plan, and the name of the cell's folder.
std::string cell_name(const Plan& plan, const Cell& cell);

/// The task that a cell's run gets.
run::Task cell_task(const Plan& plan, const Cell& cell);

/// Of everything that decides what is run: the plan's text, its tasks, its candidates, its questions files.
std::string plan_hash(const Plan& plan);

}  // namespace ks::experiment
