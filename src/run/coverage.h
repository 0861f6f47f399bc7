// What runs made of the bank: which entries fired at an evaluation, came first, were asked, were answered, and were
// followed by a gain. Each run is replayed event by event from its trace and records.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "steering/bank.h"

namespace ks::run {

/// Counts of one entry.
struct EntryCoverage {
  int fired = 0;      ///< evaluations after which its trigger was true
  int unsayable = 0;  ///< of these, how often a slot was empty, nothing could be shown, or the lint refused the text
  int first = 0;      ///< of these, how often the bank's choice fell on it
  int asked = 0;      ///< questions of it in the runs
  int answered = 0;   ///< of these, answered
  int improved = 0;   ///< of these, with a rise of the best within so many evaluations
};

struct Coverage {
  int runs = 0, moments = 0;                     ///< moments: evaluations
  std::map<std::string, EntryCoverage> entries;  ///< every entry of the bank
};

/// `paths`: runs, or folders that hold some at any depth. `within`: evaluations after a question in which the best
/// figure must rise by more than twice the noise. Throws ks::Error where a path holds no run.
Coverage coverage_of(const steering::Bank& bank, const std::vector<base::fs::path>& paths, int within);

Json to_json(const Coverage& coverage);

}  // namespace ks::run
