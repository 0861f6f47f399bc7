// A device as a worker sees it: memory that it was granted, and a way to run a block of calls. The protocol loop knows
// nothing else of where it runs. `cpu` is in cpu_worker_device.cc; another device is another file behind this
// interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernelseek.h"

namespace ks::worker {

/// An arena that the evaluator grants: shared memory by descriptor, or device memory by handle.
struct ArenaGrant {
  uint64_t bytes = 0;
  bool writable = false;
  int fd = -1;      ///< cpu: borrowed, the caller closes it
  std::string ipc;  ///< cuda: the handle's bytes
};

/// A candidate's ks_run or ks_plan_lengths.
using CallFunction = ks_status (*)(const void* call);

/// One block of calls.
struct Block {
  std::vector<CallFunction> functions;  ///< made of each call, in order: ks_run, or ks_plan_lengths before it
  std::vector<const void*> calls;       ///< CALL structs, ready to use
  bool graph = false;                   ///< capture once per list of calls, then replay
};

/// How a block went. Times are the worker's own; the evaluator has a clock that counts.
struct BlockResult {
  int64_t begin_ns = 0, end_ns = 0;
  int64_t event_ns = 0;      ///< by the device's own timer
  ks_status status = KS_OK;  ///< of the first call that failed; the rest were not made
  std::string error;         ///< what is known of a failure
};

class WorkerDevice {
 public:
  virtual ~WorkerDevice() = default;

  virtual std::string kind() const = 0;
  /// Gets the device ready, before the process is confined and any candidate code is loaded.
  virtual void open(int ordinal, int threads) = 0;
  /// True if the driver opens device files while it works.
  virtual bool needs_device_files() const = 0;

  virtual void map(const std::vector<ArenaGrant>& grants) = 0;
  /// Address of a span in a mapped arena. Throws ks::Error where it does not lie inside.
  virtual void* address(int arena, uint64_t offset, uint64_t bytes) const = 0;
  virtual void unmap() = 0;

  /// Fills the stream, the device and the threads of a call.
  virtual void fill_context(ks_context& context) const = 0;
  /// Runs the calls in order and returns when all device work is complete.
  virtual BlockResult run(const Block& block) = 0;
};

/// Makes every function of every call, in order, until one fails.
void make_calls(const Block& block, BlockResult& result);

/// The device of a kind. Throws ks::Error where this worker was built without it.
std::unique_ptr<WorkerDevice> make_worker_device(const std::string& kind);

/// Calls function(call), turning an exception that escapes into KS_FAILED with its text in `error`.
ks_status call_guarded(CallFunction function, const void* call, std::string& error);

}  // namespace ks::worker
