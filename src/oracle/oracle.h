// The trusted process that knows the answers. It loads the operator's library, makes inputs, solves them, lays out the
// buffers of each side, fills them under secret symmetries, and verifies what a worker left there. It never runs
// anything of a candidate or a baseline, and no worker ever maps its memory beyond the arenas it is given.
//
// The parent drives it over a channel; each request names a method below (serve_oracle).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/subprocess.h"
#include "device/device.h"
#include "operators/operator.h"

namespace ks::oracle {

/// Bytes before and after every buffer that must still hold their pattern when a call has returned.
inline constexpr uint64_t kRedzoneBytes = 4096;
inline constexpr uint64_t kAlignment = 256;

/// Switches that only tests reach: each turns one counter off, to show that it is the one that catches a trick.
struct Counters {
  bool poison_outputs = true;
  bool poison_scratch = true;
  bool check_redzones = true;
  bool check_inputs = true;
  bool check_state = true;
  bool fresh_inputs = true;  ///< off: every set of every block is the same data
  bool row_errors = true;    ///< off: one absolute tolerance of 1e-2 on 99 % of the elements, as is usual
};

/// Inputs and the answer to them.
struct Solved {
  op::Buffers inputs;
  op::Expected expected;
  int base_arena = -1;  ///< the inputs where the device can copy from
  std::vector<device::Span> base;
  std::unique_ptr<device::ExpectedOnDevice> on_device;
};

/// One buffer set of a side.
struct Set {
  std::vector<device::Span> tensors;  ///< in the order of Problem::tensors
  device::Span scratch, state, schedule;
  op::Symmetry symmetry;
  std::string slot;                  ///< which solved inputs
  std::vector<uint64_t> input_hash;  ///< of inputs and of in-outs before the call
  bool prepared = false;
};

/// The arenas of one side (the candidate, or a baseline).
struct SideBuffers {
  int input_arena = -1, output_arena = -1;
  uint64_t input_bytes = 0, output_bytes = 0;
  std::vector<device::Span> input_redzones, output_redzones;
  std::vector<Set> sets;
  uint32_t redzone_word = 0;
};

/// What verification found in one set.
struct Finding {
  bool ok = true;
  std::string verdict = "correct";  ///< "correct", "wrong" or "cheat"
  std::string reason;
  double worst = 0, mean = 0, limit = 0;  ///< relative row errors of the output that came nearest to its limit
};

class Oracle {
 public:
  Oracle(const std::string& operator_library, std::unique_ptr<device::Device> device, int threads);
  ~Oracle();

  const op::Operator& the_operator() const { return *operator_; }
  device::Device& the_device() { return *device_; }
  Counters& counters() { return counters_; }

  /// Makes the problem of a scenario current; forgets the one before.
  const op::Problem& set_problem(const core::Scenario& scenario);
  /// Makes inputs by a recipe and solves them, under the name `slot`.
  void solve(const std::string& slot, const std::string& recipe, uint64_t seed, bool nan_slack,
             const op::Coverage& coverage);
  void forget(const std::string& slot);
  /// Lays out `count` sets for a side.
  const SideBuffers& lay_out(const std::string& side, int count, uint64_t scratch_bytes, uint64_t state_bytes,
                             uint64_t schedule_bytes);
  void release(const std::string& side);
  /// Fills the sets of a side from a slot, each under a symmetry of its own (seed 0: as they are), outputs poisoned.
  void prepare(const std::string& side, const std::vector<int>& sets, const std::string& slot, uint64_t seed);
  /// Judges what lies in sets after their calls: the fences around all buffers of the side, then each set's inputs
  /// and outputs. The worst finding, or the first that is not ok.
  /// `skip`: outputs that this side does not have (a baseline without LSE).
  /// `loose`: it rounds its operands to e4m3, and is judged by the limits of that type.
  Finding verify(const std::string& side, const std::vector<int>& sets, const std::vector<std::string>& skip = {},
                 bool loose = false);
  /// True if a side's output bytes in two sets, prepared alike, are the same (determinism).
  bool same_outputs(const std::string& side, int first, int second);

 private:
  void fill_inputs(Set& set, const Solved& solved);
  Finding check_fences(const SideBuffers& side);
  Finding check_inputs(const Set& set);
  Finding check_values(const op::Problem& problem, const Set& set, const std::vector<std::string>& skip);
  Finding check_loosely(const Set& set);

  void* library_ = nullptr;
  std::unique_ptr<op::Operator> operator_;
  std::unique_ptr<device::Device> device_;
  int threads_;
  uint64_t secret_;
  Counters counters_;
  std::optional<op::Problem> problem_;
  std::optional<op::Problem> loose_problem_;  ///< the same with the limits of e4m3
  std::map<std::string, Solved> solved_;
  std::map<std::string, SideBuffers> sides_;
};

/// Answers requests until the channel closes.
void serve_oracle(base::Channel& channel);

}  // namespace ks::oracle
