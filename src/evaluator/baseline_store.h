// Where the files of rival libraries lie, how they get there, and how they travel to a machine without a network. A
// baseline with `extract` lives in a folder of its own that holds just what its worker loads; its `trees` are the
// hashes that this folder may have, so that what runs is what was released.
#pragma once

#include <string>
#include <vector>

#include "evaluator/baselines.h"

namespace ks::evaluator {

/// Largest archive that `pack_baselines` leaves: what a small transfer can carry.
inline constexpr uint64_t kPackBytesMax = 56ull << 20;

/// The folder of a baseline's extracted files: $KERNELSEEK_RIVALS/NAME, else rivals/NAME in the project's environment.
base::fs::path rival_folder(const std::string& name);

/// SHA-256 over "path, its SHA-256" of every file below, by path; byte code that Python leaves there does not count.
std::string tree_hash(const base::fs::path& folder);

/// Gets a baseline's packages (a group's members' packages) and checks them against their pinned hashes.
/// `python`: version of the interpreter that will load them, e.g. "3.12"; empty: this machine's.
void install_baseline(const Baseline& baseline, const std::string& python);

/// One archive of the folders of these baselines (groups by their members). Throws ks::Error where one is not
/// installed, is not what it should be, or where the archive would be too large. Returns its bytes.
uint64_t pack_baselines(const std::vector<std::string>& names, const base::fs::path& archive);

/// The reverse: unpacks, checks every folder against its pinned hashes, then puts it in place. Returns the names.
std::vector<std::string> unpack_baselines(const base::fs::path& archive);

}  // namespace ks::evaluator
