// Builds a native candidate into one shared object, in a clean folder, cached by the hash of everything that can change
// the result: sources, every file they include that is not the system's, flags, compiler and processor.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "evaluator/candidate.h"

namespace ks::evaluator {

/// What ptxas says of one kernel.
struct PtxasKernel {
  std::string name;  ///< mangled
  std::string arch;  ///< "sm_90a"
  int registers = 0, stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0, smem_bytes = 0;
  std::string wgmma_serialized;  ///< ptxas's reason; empty: not serialised
};

/// How a build went.
struct Build {
  bool ok = false;
  std::string shared_object;  ///< path of the shared object
  std::string hash;           ///< of the sources and all else; the binary carries it as ks_source_hash
  std::string source_hash;    ///< of the sources and flags alone: what a binary from another machine must be of
  bool prebuilt = false;      ///< taken from a folder that was built elsewhere
  std::string log;            ///< of a failed build: the first errors; else warnings, shortened
  std::string compiler;       ///< version line
  double seconds = 0;         ///< of the compilation (the original one, where cached)
  bool cached = false;
  std::vector<PtxasKernel> ptxas;
  std::vector<std::string>
      imports;  ///< what the candidate's own objects leave undefined (a linked-in runtime not counted)
};

/// Compiles and links, or takes the result from the cache. A candidate that does not compile is a Build that is not
/// ok; ks::Error is thrown where no compiler is found or nothing can be written.
/// `prebuilt`: a folder with candidate.so and build.json as the cache keeps them, built elsewhere from these very
/// sources; then no compiler is needed, and ks::Error says what differs where it is not that.
Build build_candidate(const Candidate& candidate, const std::string& device, int threads,
                      const std::string& prebuilt = "");

/// Kernels in ptxas's verbose output.
std::vector<PtxasKernel> parse_ptxas(const std::string& log);
Json to_json(const PtxasKernel& kernel);

/// The first errors of a compiler's output, at most `max_lines` lines; says how many lines were left out.
std::string first_errors(const std::string& output, size_t max_lines = 40);

/// The CUDA compiler: in PATH, in $CUDA_HOME/bin, in /usr/local/cuda/bin or in the project's environment; "" if none.
std::string find_nvcc();

}  // namespace ks::evaluator
