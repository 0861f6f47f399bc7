// One scenario: every side is checked for correctness, then those that are right are timed against each other.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/record.h"
#include "evaluator/oracle_client.h"
#include "evaluator/worker_client.h"

namespace ks::evaluator {

/// One implementation in this evaluation, with its worker.
struct Contender {
  std::string name;  ///< "candidate", "aa" (the candidate once more), or a baseline's name
  std::unique_ptr<WorkerClient> worker;
  core::Side result;   ///< of the current scenario
  ShapeAnswer shape;   ///< of the current scenario
  bool known = false;  ///< an earlier record has it in the current scenario
};

/// How much work is spent, and what may be skipped.
struct Effort {
  double check_budget_s = 2.0;      ///< per scenario: inputs beyond the first two are tried while this lasts
  double timing_budget_s = 2.6;     ///< per scenario
  double target_half_width = 0.01;  ///< of the paired log ratios' interval: stop when all are this narrow
  int min_rounds = 2;               ///< each round gives two samples a side
  int max_rounds = 30;
  uint64_t memory_limit_bytes = 4ull << 30;  ///< scratch of one side
};

/// Counters that only tests switch off.
struct Switches {
  bool hostile_inputs = true;  ///< inputs beside the timed mixture
  bool timed_outputs = true;   ///< every output of a timed block is verified
};

/// What the stages share.
struct Workbench {
  OracleClient& oracle;
  std::vector<Contender>& contenders;
  Effort effort;
  double host_overhead_us = 0;  ///< of an empty block: the same for everyone
  bool on_gpu = false;
  uint64_t seed = 0;  ///< secret, of this evaluation
  const std::atomic<bool>* cancel = nullptr;
  Switches switches;
  bool warm = false;     ///< a block is calls on one set, caches warm: for comparison with other people's figures
  double asking_us = 0;  ///< of an empty block by our clock, also on a GPU
  Json clocks = Json::object();  ///< of the current scenario: by side, what the device said after each sample
  double worker_s = 0;           ///< spent in candidates and baselines (not the evaluator's own share)
  bool cancelled() const { return cancel != nullptr && cancel->load(); }
};

/// Asks each side for the shape and checks its outputs on secret inputs. Fills Contender::result.verdict.
void check_scenario(Workbench& bench, const core::Scenario& scenario, const ProblemInfo& problem);

/// Times the sides that came out correct, in turns. Fills time_us and samples_us; a side whose timed output is wrong
/// loses its verdict.
void time_scenario(Workbench& bench, const core::Scenario& scenario, const ProblemInfo& problem);

/// Median time of a block without calls, in microseconds: the cost of asking, measured on this worker.
double empty_block_us(WorkerClient& worker);

}  // namespace ks::evaluator
