// Looks at a built candidate before anything of it runs: what it imports and exports, which libraries it wants, whether
// it carries a baseline inside, raw system calls, executable stacks, code that runs at load, instructions that were
// promised. The binary is judged, never the text: names in comments prove nothing.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "evaluator/candidate.h"

namespace ks::evaluator {

/// What was found.
struct Inspection {
  bool refused = false;
  std::string reason;             ///< the first finding that refuses, as a sentence
  Json findings = Json::array();  ///< objects: what, detail, refuses
};

/// Inspects a shared object that build_candidate made. What ptxas said is read from build.json beside it.
/// Throws ks::Error where the file cannot be read as an ELF object.
Inspection inspect_binary(const std::string& library, const Candidate& candidate);

}  // namespace ks::evaluator
