// The host as a device: arenas are anonymous shared memory (memfd), which a worker maps read-only or writable.
// What must happen at memory speed (symmetries, comparisons) runs over rows: the last axis of a tensor is contiguous.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "device/device.h"
#include "operators/apply_symmetry.h"
#include "operators/output_rows.h"

namespace ks::device {
namespace {

struct Arena {
  int fd = -1;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  bool writable = false;
};

/// Bytes of the caches of one core and of the last level, from sysfs; 0 where it is not said.
uint64_t cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::ifstream level_file(folder + "level"), size_file(folder + "size");
    int found = 0;
    std::string size;
    if (!(level_file >> found) || found != level || !(size_file >> size)) continue;
    std::ifstream type_file(folder + "type");
    std::string type;
    if ((type_file >> type) && type == "Instruction") continue;
    const uint64_t factor = size.back() == 'K' ? 1024 : size.back() == 'M' ? 1 << 20 : 1;
    return std::stoull(size) * factor;
  }
  return 0;
}

class CpuExpected : public ExpectedOnDevice {
 public:
  explicit CpuExpected(op::Expected values) : values_(std::move(values)) {}
  const op::Expected& values() const { return values_; }

 private:
  op::Expected values_;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}
  ~CpuDevice() override {
    for (auto& [id, arena] : arenas_) drop(arena);
  }

  std::string kind() const override { return "cpu"; }
  Json describe() const override {
    return Json{{"kind", "cpu"}, {"threads", threads_}, {"l2_bytes", cache_bytes(2)}, {"l3_bytes", cache_bytes(3)}};
  }
  /// Twice the second-level caches of the cores in use: from there every core starts cold. (The last level is shared
  /// with the rest of the machine and as large as many whole problems: emptying it would take sets by the hundred.)
  uint64_t cold_bytes() const override {
    return 2 * std::max<uint64_t>(cache_bytes(2), 1 << 20) * static_cast<uint64_t>(threads_);
  }

  int allocate(uint64_t bytes, bool worker_may_write) override {
    Arena arena;
    arena.bytes = (bytes + 4095) / 4096 * 4096;
    arena.writable = worker_may_write;
    arena.fd = ::memfd_create("kernelseek", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (arena.fd < 0 || ::ftruncate(arena.fd, static_cast<off_t>(arena.bytes)) != 0) {
      drop(arena);
      throw Error("out of memory: cannot have {} bytes of shared memory: {}", arena.bytes, std::strerror(errno));
    }
    void* data = ::mmap(nullptr, arena.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd, 0);
    if (data == MAP_FAILED) {
      drop(arena);
      throw Error("out of memory: cannot map {} bytes of shared memory: {}", arena.bytes, std::strerror(errno));
    }
    arena.data = static_cast<std::byte*>(data);
    // We keep our writable mapping; whoever maps the descriptor later cannot write through it.
    int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    if (!worker_may_write) seals |= F_SEAL_FUTURE_WRITE;
    ::fcntl(arena.fd, F_ADD_SEALS, seals | F_SEAL_SEAL);
    arenas_[next_] = arena;
    return next_++;
  }

  void release(int id) override {
    const auto found = arenas_.find(id);
    if (found == arenas_.end()) return;
    drop(found->second);
    arenas_.erase(found);
  }

  Share share(int id) const override {
    const Arena& arena = arenas_.at(id);
    return {arena.fd, "", arena.bytes, arena.writable};
  }

  void upload(Span to, const void* from) override { std::memcpy(at(to), from, to.bytes); }
  void download(Span from, void* to) override { std::memcpy(to, at(from), from.bytes); }

  void fill(Span span, uint32_t word) override {
    auto* words = reinterpret_cast<uint32_t*>(at(span));
    std::fill(words, words + span.bytes / 4, word);
  }

  bool holds(const std::vector<Span>& spans, uint32_t word) override {
    uint32_t difference = 0;
    for (const Span& span : spans) {
      const auto* words = reinterpret_cast<const uint32_t*>(at(span));
      for (uint64_t i = 0; i < span.bytes / 4; ++i) difference |= words[i] ^ word;
    }
    return difference == 0;
  }

  uint64_t hash(Span span, uint64_t seed) override { return base::buffer_hash(at(span), span.bytes, seed); }

  void transform(const op::Problem& problem, int index, const op::Symmetry& symmetry, Span from, Span to) override {
    op::transform_tensor(problem, index, symmetry, at(from), at(to), threads_);
  }

  std::unique_ptr<ExpectedOnDevice> keep(const op::Problem&, const op::Expected& expected) override {
    return std::make_unique<CpuExpected>(expected);
  }

  RowReport compare(const op::Problem& problem, int index, const op::Symmetry& symmetry,
                    const ExpectedOnDevice& expected, Span got, const std::vector<std::byte>* initial) override {
    const auto& rows = static_cast<const CpuExpected&>(expected).values().tensors[static_cast<size_t>(index)];
    const auto found = op::compare_rows(problem, index, symmetry, rows, at(got),
                                        initial != nullptr ? initial->data() : nullptr, threads_);
    RowReport report{found.rows, found.worst, found.mean, found.failures, found.where};
    check_gaps(problem.tensors[static_cast<size_t>(index)], at(got), initial, report);
    return report;
  }

 private:
  std::byte* at(Span span) {
    const Arena& arena = arenas_.at(span.arena);
    KS_CHECK(span.offset + span.bytes <= arena.bytes, "a span lies in its arena");
    return arena.data + span.offset;
  }
  /// Bytes between rows must be what they were: poison, or the in-out tensor's own.
  static void check_gaps(const op::Tensor& tensor, const std::byte* got, const std::vector<std::byte>* initial,
                         RowReport& report) {
    if (op::is_packed(tensor)) return;
    std::vector<std::byte> poison;
    if (initial == nullptr) {
      const uint32_t word = tensor.dtype == core::Dtype::kE4m3 ? kPoisonWordE4m3 : kPoisonWord;
      poison.resize(tensor.bytes);
      for (size_t i = 0; i < poison.size(); ++i) poison[i] = static_cast<std::byte>(word >> (8 * (i % 4)));
    }
    const int64_t gap = op::first_changed_gap(tensor, got, initial != nullptr ? initial->data() : poison.data());
    if (gap < 0) return;
    if (report.failures++ == 0)
      report.where = fmt::format("{}: byte {} between its rows was written", tensor.name, gap);
  }
  static void drop(Arena& arena) {
    if (arena.data != nullptr) ::munmap(arena.data, arena.bytes);
    if (arena.fd >= 0) ::close(arena.fd);
    arena = {};
  }

  int threads_;
  int next_ = 1;
  std::map<int, Arena> arenas_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) {
  return std::make_unique<CpuDevice>(threads);
}

}  // namespace ks::device
