// The parent's side of a worker process: starts it, asks it, measures it with the parent's own clock, and turns every
// way in which it can fail into a verdict.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "core/record.h"
#include "evaluator/oracle_client.h"
#include "sandbox/witness.h"

namespace ks::evaluator {

/// Something that a worker can run: a candidate that was built, or a baseline.
struct Implementation {
  std::string name;                  ///< "candidate", or the baseline's
  std::vector<std::string> command;  ///< of a worker folder; empty: kernelseek-worker
  std::string folder;                ///< working folder of `command`
  std::string shared_object;         ///< of a native implementation
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> unwritten;  ///< outputs that a native baseline does not have
  bool is_candidate = false;
};

/// A worker that failed: the verdict and the reason in words.
struct Failure {
  core::Verdict verdict = core::Verdict::kCrash;
  std::string reason;
};

/// Sizes that an implementation asked for, or why it cannot run the shape.
struct ShapeAnswer {
  bool supported = false;
  std::string reason;
  uint64_t scratch_bytes = 0, state_bytes = 0, schedule_bytes = 0;
  double plan_us = 0;
  std::vector<std::string> unwritten;  ///< outputs that a baseline does not have; empty for candidates
  bool rounds_to_e4m3 = false;         ///< a baseline that rounds its operands: judged by the limits of that type
};

class WorkerClient {
 public:
  /// `freezes` is false in tests alone: the worker then runs on after its answer.
  WorkerClient(Implementation implementation, std::string device, int threads, bool sandboxed, bool freezes = true);
  ~WorkerClient();

  const Implementation& implementation() const { return implementation_; }
  const Json& protections() const { return protections_; }
  const Json& versions() const { return versions_; }
  bool has_plan_lengths() const { return has_plan_lengths_; }

  // Each of the following answers nothing on success, else what went wrong; after a crash or a time-out the worker is
  // gone, and start() makes a fresh one.
  std::optional<Failure> start();
  /// Starts the process and asks it to load, without waiting for the answer: start() does. Several load at once so.
  void begin_start();
  std::optional<Failure> shape(const core::Scenario& scenario, const ProblemInfo& problem, ShapeAnswer& answer);
  std::optional<Failure> map(Layout& layout);
  std::optional<Failure> plan_lengths(int set, double& elapsed_us);
  /// One block: runs the calls and measures it from before the worker is thawed to its answer, then freezes it.
  /// `is_sample`: its time counts, so on a GPU the device's timer must agree with our clock (first calls capture and
  /// load).
  /// `phase`: "run", "plan" (ks_plan_lengths alone) or "both", one before the other in each call.
  /// `eager`: the calls one by one even on a GPU, and our clock's time: the host's share is what is asked for.
  std::optional<Failure> run(const std::vector<int>& sets, double limit_s, double& elapsed_us, bool is_sample = false,
                             bool eager = false, const std::string& phase = "run");
  std::optional<Failure> unmap();

  /// Stops every thread of the worker; nothing of it runs until the next request.
  void freeze();
  bool running() const { return child_ != nullptr; }
  void stop();

 private:
  std::optional<Failure> ask(const Json& request, double limit_s, Json& answer, const std::vector<int>& fds = {});
  /// `fds`: descriptors that came with the answer; closed where nobody asks for them.
  std::optional<Failure> take_answer(const std::string& doing, double limit_s, Json& answer,
                                     std::vector<int>* fds = nullptr);
  std::optional<Failure> take_confinement();
  std::optional<Failure> take_event_time(const Json& answer, bool is_sample, double& elapsed_us);
  Failure dead(const std::string& doing);
  void thaw();
  bool has_witness() const { return sandboxed_ && implementation_.command.empty(); }

  Implementation implementation_;
  std::string device_;
  int threads_;
  bool sandboxed_, freezes_;
  std::unique_ptr<base::Child> child_;
  std::unique_ptr<sandbox::Witness> witness_;  ///< of the child's forbidden calls; native workers only
  bool frozen_ = false;
  bool loading_ = false;  ///< asked to load; the answer is still to come
  bool has_plan_lengths_ = false;
  Json protections_ = Json::object(), versions_ = Json::object();
};

}  // namespace ks::evaluator
