// The host as a worker's device: arenas are shared memory, inputs mapped read-only; a call is complete when it returns.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "worker/worker_device.h"

namespace ks::worker {
namespace {

struct Mapping {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
};

class CpuWorkerDevice : public WorkerDevice {
 public:
  ~CpuWorkerDevice() override { drop(); }

  std::string kind() const override { return "cpu"; }
  void open(int, int threads) override { threads_ = threads; }
  bool needs_device_files() const override { return false; }

  void map(const std::vector<ArenaGrant>& grants) override {
    drop();
    for (const auto& grant : grants) {
      if (grant.fd < 0) throw Error("an arena of {} bytes came without a descriptor", grant.bytes);
      const int protection = grant.writable ? PROT_READ | PROT_WRITE : PROT_READ;
      // Populated at once: page faults are not the candidate's time.
      void* data = ::mmap(nullptr, grant.bytes, protection, MAP_SHARED | MAP_POPULATE, grant.fd, 0);
      if (data == MAP_FAILED) {
        const int reason = errno;
        drop();
        throw Error("cannot map an arena of {} bytes: {}", grant.bytes, std::strerror(reason));
      }
      mappings_.push_back({static_cast<std::byte*>(data), grant.bytes});
    }
  }

  void* address(int arena, uint64_t offset, uint64_t bytes) const override {
    if (arena < 0 || static_cast<size_t>(arena) >= mappings_.size()) throw Error("there is no arena {}", arena);
    const Mapping& mapping = mappings_[static_cast<size_t>(arena)];
    if (offset > mapping.bytes || bytes > mapping.bytes - offset)
      throw Error("{} bytes at {} do not lie in arena {} of {} bytes", bytes, offset, arena, mapping.bytes);
    return mapping.data + offset;
  }

  void unmap() override { drop(); }

  void fill_context(ks_context& context) const override {
    context.stream = nullptr;
    context.device = 0;
    context.threads = threads_;
  }

  BlockResult run(const Block& block) override {
    BlockResult result;
    result.begin_ns = base::monotonic_ns();
    make_calls(block, result);
    result.end_ns = base::monotonic_ns();
    result.event_ns = result.end_ns - result.begin_ns;
    return result;
  }

 private:
  void drop() {
    for (const auto& mapping : mappings_) ::munmap(mapping.data, mapping.bytes);
    mappings_.clear();
  }

  std::vector<Mapping> mappings_;
  int threads_ = 1;
};

}  // namespace

#ifdef KS_WITH_CUDA
std::unique_ptr<WorkerDevice> make_cuda_worker_device();
#endif

std::unique_ptr<WorkerDevice> make_worker_device(const std::string& kind) {
  if (kind == "cpu") return std::make_unique<CpuWorkerDevice>();
#ifdef KS_WITH_CUDA
  if (kind == "cuda") return make_cuda_worker_device();
#endif
  throw Error("this worker was built without device \"{}\"", kind);
}

void make_calls(const Block& block, BlockResult& result) {
  for (const void* call : block.calls) {
    for (const CallFunction function : block.functions) {
      result.status = call_guarded(function, call, result.error);
      if (result.status != KS_OK) return;
    }
  }
}

ks_status call_guarded(CallFunction function, const void* call, std::string& error) {
  try {
    return function(call);
  } catch (const std::exception& e) {
    error = fmt::format("an exception escaped: {}", e.what());
  } catch (...) {
    error = "an exception escaped";
  }
  return KS_FAILED;
}

}  // namespace ks::worker
