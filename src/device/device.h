// A device as the trusted side sees it: memory that a worker can be given, and what must happen where the tensors lie
// (poison, redzones, hashes, symmetries, comparisons). Two kinds: cpu/ and cuda/. The protocol is the same on both.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "operators/operator.h"

namespace ks::device {

/// A piece of an arena.
struct Span {
  int arena = -1;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// What a worker needs to map an arena: a descriptor (cpu) or an IPC handle (cuda).
struct Share {
  int fd = -1;      ///< borrowed: stays the device's
  std::string ipc;  ///< hex
  uint64_t bytes = 0;
  bool writable = false;
};

/// How the rows of one output compare with what they should be.
struct RowReport {
  int64_t rows = 0;      ///< rows compared
  double worst = 0;      ///< largest row error (relative L2 or absolute)
  double mean = 0;       ///< mean row error
  int64_t failures = 0;  ///< rows past the limit, not finite, or not exactly zero where they must be
  std::string where;     ///< the first failing row in words, with a value got and the value wanted
};

/// The expected outputs of a solved problem, kept where the device can compare against them.
class ExpectedOnDevice {
 public:
  virtual ~ExpectedOnDevice() = default;
};

/// Words that memory is filled with before a call: signalling NaN as binary32, NaN as binary16 and bfloat16.
inline constexpr uint32_t kPoisonWord = 0x7FA07FA0u;
/// The same for e4m3, whose only NaN is 0x7F (and 0xFF).
inline constexpr uint32_t kPoisonWordE4m3 = 0x7F7F7F7Fu;

class Device {
 public:
  virtual ~Device() = default;

  /// "cpu" or "cuda".
  virtual std::string kind() const = 0;
  /// Name, driver, clocks, caches: what a record says of the device.
  virtual Json describe() const = 0;
  /// The sets of a timed block together must exceed this, so that no input is in cache when its call begins.
  virtual uint64_t cold_bytes() const = 0;
  /// Before a timed block: takes back what an earlier call may have asked of the caches.
  virtual void settle() {}
  /// Clocks, power and what holds them down, now; empty where the device has nothing to say.
  virtual Json state() const { return Json::object(); }

  /// Memory for a worker (ks::Error "out of memory: …" where there is too little), 4096-byte aligned; the worker sees
  /// it read-only unless `worker_may_write`.
  virtual int allocate(uint64_t bytes, bool worker_may_write) = 0;
  virtual void release(int arena) = 0;
  virtual Share share(int arena) const = 0;

  virtual void upload(Span to, const void* from) = 0;
  virtual void download(Span from, void* to) = 0;
  /// Fills with a word; offset and bytes are multiples of 4.
  virtual void fill(Span span, uint32_t word) = 0;
  /// True if every word of every span still is `word`.
  virtual bool holds(const std::vector<Span>& spans, uint32_t word) = 0;
  virtual uint64_t hash(Span span, uint64_t seed) = 0;

  /// Inputs of the tensor `index` of `problem`, moved from `from` to `to` under a symmetry.
  virtual void transform(const op::Problem& problem, int index, const op::Symmetry& symmetry, Span from, Span to) = 0;

  virtual std::unique_ptr<ExpectedOnDevice> keep(const op::Problem& problem, const op::Expected& expected) = 0;
  /// The answer computed where the inputs lie, all rows, if the operator has that form; else null. `checked` holds
  /// rows of the float64 reference: where the two disagree, ks::Error is thrown (the oracle itself would be wrong).
  virtual std::unique_ptr<ExpectedOnDevice> solve_here(const op::Operator& /*the_operator*/,
                                                       const op::Problem& /*problem*/,
                                                       const std::vector<Span>& /*inputs*/,
                                                       const op::Expected& /*checked*/) {
    return nullptr;
  }
  /// Compares an output (or the written part of an in-out tensor, whose initial bytes were `initial`) with what the
  /// symmetry makes of the expected values. Bytes between rows must still be poison (outputs) or initial (in-outs).
  virtual RowReport compare(const op::Problem& problem, int index, const op::Symmetry& symmetry,
                            const ExpectedOnDevice& expected, Span got, const std::vector<std::byte>* initial) = 0;
};

/// The host's memory and processors.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace ks::device
