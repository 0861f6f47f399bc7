// A GPU as a worker's device: arenas are the oracle's allocations opened by IPC handle, calls go to one stream of ours.
// A block is run eagerly, or as a graph that is captured once for each list of calls. Events bracket the device's work.
#include <cuda_runtime_api.h>

#include <cstring>
#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "worker/worker_device.h"

namespace ks::worker {
namespace {

void check(cudaError_t status, const char* doing) {
  if (status != cudaSuccess) throw Error("{}: {}", doing, cudaGetErrorString(status));
}

struct Mapping {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
};

class CudaWorkerDevice : public WorkerDevice {
 public:
  ~CudaWorkerDevice() override { unmap(); }

  std::string kind() const override { return "cuda"; }
  bool needs_device_files() const override { return true; }

  void open(int ordinal, int) override {
    ordinal_ = ordinal;
    check(cudaSetDevice(ordinal), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }

  void map(const std::vector<ArenaGrant>& grants) override {
    unmap();
    for (const auto& grant : grants) {
      cudaIpcMemHandle_t handle;
      if (grant.ipc.size() != sizeof handle.reserved) throw Error("an IPC handle of {} bytes", grant.ipc.size());
      std::memcpy(handle.reserved, grant.ipc.data(), sizeof handle.reserved);
      void* data = nullptr;
      check(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
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

  void unmap() override {
    for (auto& [calls, graph] : graphs_) cudaGraphExecDestroy(graph);
    graphs_.clear();
    for (const auto& mapping : mappings_) cudaIpcCloseMemHandle(mapping.data);
    mappings_.clear();
  }

  void fill_context(ks_context& context) const override {
    context.stream = stream_;
    context.device = ordinal_;
    context.threads = 0;
  }

  BlockResult run(const Block& block) override {
    BlockResult result;
    if (block.calls.empty()) {
      result.begin_ns = result.end_ns = base::monotonic_ns();
      return result;
    }
    cudaGraphExec_t graph = block.graph ? graph_of(block, result) : nullptr;
    if (result.status != KS_OK) return result;
    result.begin_ns = base::monotonic_ns();
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    if (graph != nullptr)
      check(cudaGraphLaunch(graph, stream_), "cudaGraphLaunch");
    else
      make_calls(block, result);
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    // Whatever stream the work went to, the device is idle when we answer.
    const cudaError_t status = cudaDeviceSynchronize();
    result.end_ns = base::monotonic_ns();
    if (status != cudaSuccess) throw Error("a CUDA error in the call: {}", cudaGetErrorString(status));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    result.event_ns = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
    return result;
  }

 private:
  cudaGraphExec_t graph_of(const Block& block, BlockResult& result) {
    const auto key = std::make_pair(block.functions, block.calls);
    const auto found = graphs_.find(key);
    if (found != graphs_.end()) return found->second;
    cudaGraph_t captured = nullptr;
    cudaGraphExec_t graph = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    make_calls(block, result);
    const cudaError_t status = cudaStreamEndCapture(stream_, &captured);
    if (result.status != KS_OK) return nullptr;
    check(status, "the calls cannot be captured in a graph");
    check(cudaGraphInstantiate(&graph, captured, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(captured);
    check(cudaGraphUpload(graph, stream_), "cudaGraphUpload");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return graphs_[key] = graph;
  }

  int ordinal_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::vector<Mapping> mappings_;
  std::map<std::pair<std::vector<CallFunction>, std::vector<const void*>>, cudaGraphExec_t> graphs_;
};

}  // namespace

std::unique_ptr<WorkerDevice> make_cuda_worker_device() {
  return std::make_unique<CudaWorkerDevice>();
}

}  // namespace ks::worker
