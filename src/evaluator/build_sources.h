// What a build depends on: every file that a candidate's sources include, found by reading them as the preprocessor
// would look for them, and the hash over all that can change the binary.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "evaluator/candidate.h"

namespace ks::evaluator {

/// Sources, and the files that they include and that lie in the folders we search (never the system's: the compiler's
/// version stands for those), by absolute path. Conditional includes are taken as well.
std::map<std::string, std::string> find_dependencies(const Candidate& candidate,
                                                     const std::vector<base::fs::path>& includes);

/// Folders of -I: the candidate's own, the ABI's and those that it names.
std::vector<base::fs::path> include_folders(const Candidate& candidate);

/// SHA-256 over the files (by their place relative to the candidate, not by where that lies) and `settings`.
std::string hash_dependencies(const Candidate& candidate, const std::map<std::string, std::string>& files,
                              const std::vector<std::string>& settings);

/// What a binary from another machine must be of: sources and flags, whatever the compiler.
std::string source_hash_of(const Candidate& candidate, const std::string& device,
                           const std::map<std::string, std::string>& files);

}  // namespace ks::evaluator
