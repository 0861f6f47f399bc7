// Judges one candidate on one grid against the baselines: the public face of the evaluator.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "core/record.h"

namespace ks::evaluator {

/// Where an evaluation stands, for a person who waits.
struct Progress {
  std::string stage;     ///< "build", "check", "time"
  std::string scenario;  ///< name, empty while building
  int index = 0, total = 0;
  double elapsed_s = 0;
};

/// What is to be judged, and how.
struct Request {
  std::string candidate;      ///< file or folder, or "baseline:NAME"
  std::string operator_name;  ///< name or path; empty: the candidate's own marker
  std::string grid = "demo";  ///< name in the operator's grids/, or a file
  std::string filter;         ///< regular expression over "category/name"; empty: all
  std::string device = "cpu";
  std::vector<std::string> baselines;  ///< names, or "candidate:PATH"; empty: every installed one; {"none"}: none
  int threads = 0;                     ///< 0: every core
  double time_budget_s = 0;            ///< for the whole evaluation after the build; 0: the default per scenario
  bool check_only = false;
  std::string prebuilt;           ///< a folder with the candidate built elsewhere; empty: it is built here
  std::string timing = "blocks";  ///< "blocks" (cold, other inputs in every call) or "warm" (one set, called again)
  bool aa = true;                 ///< measure the candidate against itself on a few scenarios
  std::optional<core::Evaluation> resume;  ///< a record whose missing scenarios and baselines are added
  std::vector<std::string> counters_off;   ///< tests only: counters that are switched off
  std::function<void(const Progress&)> progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// Judges. What is wrong with the candidate is in the record; ks::Error is thrown where nothing could be judged
/// (unknown operator or grid, no compiler, no memory).
core::Evaluation evaluate(const Request& request);

/// The table that `evaluate` prints, at most `width` columns wide.
std::string evaluation_table(const core::Evaluation& evaluation, size_t width);

}  // namespace ks::evaluator
