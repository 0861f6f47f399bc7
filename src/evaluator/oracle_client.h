// The parent's side of the oracle process: typed requests over its channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "core/grid.h"
#include "core/record.h"

namespace ks::evaluator {

/// What the oracle says of a scenario; `json` is passed on to workers.
struct ProblemInfo {
  Json json;  ///< shape, call, tensors
  std::vector<std::string> recipes;
  uint64_t set_bytes = 0;
  double flops = 0, bytes = 0;
  std::string matrix_dtype;
  bool has_lengths = false;
};

/// The buffers of one side, as the worker is told.
struct Layout {
  Json arenas, sets;
  std::vector<int> fds;  ///< one an arena; the caller closes them (close_fds)
  void close_fds();
};

/// A scenario that does not fit into the device's (or the oracle's) memory; the others may.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// What verification found.
struct Finding {
  bool correct = false;
  core::Verdict verdict = core::Verdict::kWrong;
  std::string reason;
  core::RowError error;
  Json state = Json::object();  ///< of the device right after a timed block
};

class OracleClient {
 public:
  /// Starts kernelseek-oracle and opens the operator. Throws ks::Error where that fails.
  OracleClient(const std::string& operator_library, const std::string& device, int threads,
               const std::vector<std::string>& counters_off);

  const Json& device() const { return device_; }
  uint64_t cold_bytes() const { return cold_bytes_; }
  /// Seconds that the oracle took to answer, by what was asked: "solve", "prepare", "verify", "layout" …
  const std::map<std::string, double>& answering_s() const { return answering_s_; }

  ProblemInfo problem(const core::Scenario& scenario);
  /// sampled_rows 0: all rows.
  void solve(const std::string& slot, const std::string& recipe, uint64_t seed, bool nan_slack, int64_t sampled_rows);
  Layout lay_out(const std::string& side, int count, uint64_t scratch, uint64_t state, uint64_t schedule);
  /// `timed`: for a timed block, so that nothing of an earlier one stays in caches by request.
  void prepare(const std::string& side, const std::vector<int>& sets, const std::string& slot, uint64_t seed,
               bool timed = false);
  Finding verify(const std::string& side, const std::vector<int>& sets, const std::vector<std::string>& skip,
                 bool loose = false, bool timed = false);
  bool same_outputs(const std::string& side, int first, int second);
  void release(const std::string& side);
  void forget(const std::string& slot);

 private:
  Json ask(const Json& request, std::vector<int>* fds = nullptr);
  std::unique_ptr<base::Child> child_;
  Json device_;
  uint64_t cold_bytes_ = 0;
  std::map<std::string, double> answering_s_;
};

}  // namespace ks::evaluator
