// Runs a plan: every cell is a run of its own in a folder of its own, then a fresh evaluation of the version that it
// ended with, on rows that its agent never saw. Interrupted at any moment, it goes on with the cells that are missing.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>

#include "experiment/result.h"
#include "run/workbench.h"

namespace ks::experiment {

struct ExperimentOptions {
  std::string plan;
  std::string out;          ///< the experiment's folder
  bool is_resumed = false;  ///< go on in `out`
  const std::atomic<bool>* cancel = nullptr;
  std::FILE* log = stderr;
};

struct ExperimentResult {
  std::string folder, record;  ///< experiment.json
  size_t done = 0, planned = 0;
  std::string text;  ///< the comparisons as people read them
};

/// Throws ks::Error where it cannot begin or go on; finished cells stay.
ExperimentResult run_experiment(const ExperimentOptions& options, const run::Workbench& bench);

/// What would be run, in words, with nothing done.
std::string describe_experiment(const ExperimentOptions& options);

}  // namespace ks::experiment
