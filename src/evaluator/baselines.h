// Baselines: existing implementations, a folder each under baselines/, judged like any candidate.
#pragma once

#include <string>
#include <vector>

#include "evaluator/worker_client.h"

namespace ks::evaluator {

/// One baseline as its baseline.toml describes it (docs/formats/baseline.md).
struct Baseline {
  std::string name, device, summary, from;
  std::vector<std::string> operators;
  base::fs::path folder;
  std::string kind;  ///< "native" (a candidate folder), "worker" (a program that speaks the protocol), or "group"
  std::vector<std::string> members;   ///< of a group: in each scenario it is the fastest of them that is right
  std::vector<std::string> command;   ///< of a worker; "{python}" is the project's own interpreter
  std::vector<std::string> packages;  ///< pip requirements, pinned, with hashes
  std::vector<std::string> extract;   ///< beginnings of paths in the wheels: only these files, in a folder of their own
  std::vector<std::string> trees;     ///< SHA-256 that this folder may have (one for each Python)
  std::vector<std::string> needs;     ///< files, relative to the environment's site-packages, or absolute
  std::vector<std::string> apt;       ///< packages of the distribution
  std::vector<std::string> unwritten;  ///< outputs that it does not have (native ones; workers say so themselves)
  bool by_default = true;              ///< taken where no baseline is named
};

/// Every baseline in this tree for a device ("" for all), by name. Throws ks::Error naming a malformed file's line.
std::vector<Baseline> known_baselines(const std::string& device);

/// The baseline of a name; throws ks::Error with the nearest name there is.
Baseline find_baseline(const std::string& name, const std::string& device);

/// Empty if everything it needs is here; else what is missing.
std::string missing_parts(const Baseline& baseline);

/// Where pip puts the packages of baselines.
base::fs::path environment_folder();
base::fs::path environment_site_packages();

/// Builds what is to be built and says how to start it. Throws ks::Error where a native one does not compile.
Implementation open_baseline(const Baseline& baseline, int threads);

}  // namespace ks::evaluator
