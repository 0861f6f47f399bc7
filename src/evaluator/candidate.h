// A candidate as a person hands it in: one source file with a marker line, a folder with candidate.toml, or a worker
// folder with worker.toml. This finds out which, reads what it says of itself and checks it; nothing is built here.
// docs/formats/task_candidate.md describes the three forms.
#pragma once

#include <string>
#include <vector>

namespace ks::evaluator {

/// What is to be judged, as its files say.
struct Candidate {
  std::string path;           ///< as given
  std::string folder;         ///< absolute; sources and includes are relative to it
  std::string operator_name;  ///< name, or path of an operator's folder
  std::string device;         ///< "cpu" or "cuda"
  bool is_single_file = false;

  // Native candidates.
  std::vector<std::string> sources;   ///< relative to `folder`, globs expanded, sorted
  std::vector<std::string> includes;  ///< folders, absolute or relative to `folder`
  std::vector<std::string> flags;     ///< after the default ones
  std::vector<std::string> libs;      ///< names for -l
  std::string arch = "90a";           ///< CUDA: compute capability to compile for, where `flags` has no -gencode
  bool strict = false;                ///< spills and serialised wgmma refuse the candidate
  std::vector<std::string> expect_instructions;  ///< mnemonics that the binary must contain, e.g. "vdpbf16ps"

  // Worker folders: a program that speaks the worker protocol.
  std::vector<std::string> command;
};

/// Reads a candidate. `operator_override` (from --operator) takes the place of what the files say, "" if not given.
/// Throws ks::Error "file:line: … mend" where the candidate cannot be read.
Candidate load_candidate(const std::string& path, const std::string& operator_override);

}  // namespace ks::evaluator
