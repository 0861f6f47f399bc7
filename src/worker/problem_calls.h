// One shape and the calls on its sets: the ABI's structs as bytes, patched with addresses before any timing starts.
#pragma once

#include <cstddef>
#include <vector>

#include "base/json.h"
#include "worker/native_library.h"
#include "worker/worker_device.h"

namespace ks::worker {

/// Host memory on pages of its own that can be made read-only.
class Pages {
 public:
  explicit Pages(size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() const { return data_; }
  void make_read_only();

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// What a candidate said of a shape.
struct ShapeReply {
  bool supported = false;
  std::string reason;
  ks_buffer_sizes sizes{};
  int64_t plan_ns = 0;
};

/// A shape that a candidate was asked for, and the calls on the sets that it was granted.
class ProblemCalls {
 public:
  /// Reads a `shape` request and asks the candidate: ks_sizes, then ks_plan. Throws ks::Error where it fails.
  ProblemCalls(const Json& request, const NativeLibrary& library);

  const ShapeReply& reply() const { return reply_; }
  /// Builds one CALL for each entry of `sets`.
  void use_sets(const Json& sets, const WorkerDevice& device);
  void forget_sets() { calls_.clear(); }
  /// The CALL of a set. Throws ks::Error where there is none.
  const void* call(int set) const;

 private:
  struct Slot {
    uint32_t call_offset = 0;
    uint64_t byte_offset = 0;
  };
  struct Tensor {
    uint64_t bytes = 0;
    std::vector<Slot> slots;
  };
  void read_tensors(const Json& tensors);
  std::vector<std::byte> make_call(const Json& set, const WorkerDevice& device) const;

  Pages shape_, plan_;
  std::vector<std::byte> blank_call_;
  std::vector<Tensor> tensors_;
  ShapeReply reply_;
  std::vector<std::vector<std::byte>> calls_;
};

}  // namespace ks::worker
