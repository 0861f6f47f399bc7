// A CUDA device: arenas are whole device allocations, exported to workers as IPC handles. All work of the trusted side
// runs on one stream and is complete when a method returns.
#include "device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "device/cuda/check.h"
#include "device/cuda/nvml.h"
#include "device/cuda/tensor_kernels.h"
#include "operators/apply_symmetry.h"
#include "operators/output_rows.h"

namespace ks::device {
namespace {

// Smaller allocations share a block, and an IPC handle names the block: each arena gets blocks of its own.
constexpr uint64_t kArenaGranule = 2u << 20;

/// cudaMalloc, with figures where there is too little.
void* device_bytes(uint64_t bytes) {
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) == cudaSuccess) return data;
  const cudaError_t why = cudaGetLastError();  // not sticky: the next call may do
  if (why != cudaErrorMemoryAllocation)
    throw Error("cudaMalloc of {} bytes failed: {}", bytes, cudaGetErrorString(why));
  size_t free_bytes = 0, total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  throw Error("out of memory: {} bytes wanted on the GPU, {} of {} free", bytes, free_bytes, total_bytes);
}

/// Device memory with an owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(uint64_t bytes) {
    if (bytes > 0) data_ = device_bytes(bytes);
  }
  template <typename T>
  explicit DeviceMemory(const std::vector<T>& values) : DeviceMemory(values.size() * sizeof(T)) {
    if (values.empty()) return;
    KS_CUDA(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    // From pageable memory the call may return before the data has arrived, and our stream waits for no other.
    KS_CUDA(cudaStreamSynchronize(nullptr));
  }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  void* get() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

/// The expected values of one tensor in device memory.
struct ExpectedRows {
  DeviceMemory values, known, unchanged;
  bool has_known = false, has_unchanged = false;
};

class CudaExpected : public ExpectedOnDevice {
 public:
  std::vector<ExpectedRows> tensors;
};

/// A tensor under a symmetry, its maps uploaded; the memory lives as long as this.
struct UploadedMap {
  TensorMap map;
  std::vector<DeviceMemory> memory;
};

UploadedMap upload_map(const op::Tensor& tensor, int index, const op::Symmetry& symmetry) {
  UploadedMap result;
  KS_CHECK(tensor.shape.size() <= kMaxAxes, "a tensor has at most six axes");
  result.map.axes = static_cast<int>(tensor.shape.size());
  result.map.dtype = static_cast<int32_t>(tensor.dtype);
  std::copy(tensor.shape.begin(), tensor.shape.end(), result.map.shape);
  std::copy(tensor.strides.begin(), tensor.strides.end(), result.map.strides);
  for (const auto& axis : symmetry.axes) {
    if (axis.tensor != index) continue;
    result.memory.emplace_back(axis.source);
    result.map.source[axis.axis] = result.memory.back().as<const int32_t>();
  }
  for (const auto& factor : symmetry.factors) {
    if (factor.tensor != index) continue;
    result.memory.emplace_back(factor.factor);
    result.map.factor = result.memory.back().as<const float>();
  }
  return result;
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal) {
    KS_CUDA(cudaSetDevice(ordinal));
    KS_CUDA(cudaGetDeviceProperties(&properties_, ordinal));
    KS_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    counter_ = DeviceMemory(sizeof(unsigned long long));
    totals_ = DeviceMemory(sizeof(RowTotals));
  }
  ~CudaDevice() override {
    for (auto& [id, arena] : arenas_) cudaFree(arena.data);
    cudaStreamDestroy(stream_);
  }

  std::string kind() const override { return "cuda"; }

  Json describe() const override {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    Json json = {{"kind", "cuda"},
                 {"name", properties_.name},
                 {"compute_capability", fmt::format("{}.{}", properties_.major, properties_.minor)},
                 {"multiprocessors", properties_.multiProcessorCount},
                 {"memory_bytes", properties_.totalGlobalMem},
                 {"l2_bytes", properties_.l2CacheSize},
                 {"cuda_driver", driver},
                 {"cuda_runtime", runtime}};
    json["state"] = device_state(ordinal_);
    return json;
  }

  uint64_t cold_bytes() const override { return 2ull * static_cast<uint64_t>(properties_.l2CacheSize); }

  void settle() override {
    // Lines that somebody made persistent would be faster for whoever comes next.
    KS_CUDA(cudaCtxResetPersistingL2Cache());
  }
  Json state() const override { return device_state(ordinal_); }

  int allocate(uint64_t bytes, bool worker_may_write) override {
    Arena arena;
    arena.bytes = std::max<uint64_t>(1, (bytes + kArenaGranule - 1) / kArenaGranule) * kArenaGranule;
    arena.writable = worker_may_write;
    arena.data = device_bytes(arena.bytes);
    arenas_[next_] = arena;
    return next_++;
  }

  void release(int id) override {
    const auto found = arenas_.find(id);
    if (found == arenas_.end()) return;
    KS_CUDA(cudaFree(found->second.data));
    arenas_.erase(found);
  }

  Share share(int id) const override {
    const Arena& arena = arenas_.at(id);
    cudaIpcMemHandle_t handle;
    KS_CUDA(cudaIpcGetMemHandle(&handle, arena.data));
    std::string hex;
    for (const char c : handle.reserved) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return {-1, hex, arena.bytes, arena.writable};
  }

  void upload(Span to, const void* from) override {
    KS_CUDA(cudaMemcpyAsync(at(to), from, to.bytes, cudaMemcpyHostToDevice, stream_));
    wait();
  }
  void download(Span from, void* to) override {
    KS_CUDA(cudaMemcpyAsync(to, at(from), from.bytes, cudaMemcpyDeviceToHost, stream_));
    wait();
  }
  void fill(Span span, uint32_t word) override {
    fill_words(at(span), span.bytes / 4, word, stream_);
    KS_CUDA(cudaGetLastError());
    wait();
  }
  bool holds(const std::vector<Span>& spans, uint32_t word) override {
    return count([&](unsigned long long* counter) {
             for (const Span& span : spans) count_other_words(at(span), span.bytes / 4, word, counter, stream_);
           }) == 0;
  }
  uint64_t hash(Span span, uint64_t seed) override {
    return count([&](unsigned long long* counter) { hash_bytes(at(span), span.bytes, seed, counter, stream_); });
  }

  void transform(const op::Problem& problem, int index, const op::Symmetry& symmetry, Span from, Span to) override {
    const op::Tensor& tensor = problem.tensors[static_cast<size_t>(index)];
    for (const auto& replacement : symmetry.replacements)
      if (replacement.tensor == index) return upload(to, replacement.bytes.data());
    const UploadedMap uploaded = upload_map(tensor, index, symmetry);
    if (uploaded.memory.empty() || !op::is_packed(tensor))
      KS_CUDA(cudaMemcpyAsync(at(to), at(from), tensor.bytes, cudaMemcpyDeviceToDevice, stream_));
    if (!uploaded.memory.empty()) move_tensor(uploaded.map, at(from), at(to), stream_);
    KS_CUDA(cudaGetLastError());
    wait();
  }

  std::unique_ptr<ExpectedOnDevice> keep(const op::Problem&, const op::Expected& expected) override {
    auto result = std::make_unique<CudaExpected>();
    for (const auto& rows : expected.tensors) {
      ExpectedRows on_device;
      on_device.values = DeviceMemory(rows.values);
      on_device.known = DeviceMemory(rows.known);
      on_device.unchanged = DeviceMemory(rows.unchanged);
      on_device.has_known = !rows.known.empty();
      on_device.has_unchanged = !rows.unchanged.empty();
      result->tensors.push_back(std::move(on_device));
    }
    return result;
  }

  std::unique_ptr<ExpectedOnDevice> solve_here(const op::Operator& the_operator, const op::Problem& problem,
                                               const std::vector<Span>& inputs, const op::Expected& checked) override {
    auto result = std::make_unique<CudaExpected>();
    std::vector<const void*> addresses;
    std::vector<float*> values;
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      const op::Tensor& tensor = problem.tensors[t];
      ExpectedRows rows;
      if (tensor.role == op::Role::kOutput)
        rows.values =
            DeviceMemory(static_cast<uint64_t>(op::row_count(tensor) * op::column_count(tensor)) * sizeof(float));
      addresses.push_back(at(inputs[t]));
      values.push_back(rows.values.as<float>());
      result->tensors.push_back(std::move(rows));
    }
    if (!the_operator.solve_on_gpu(problem, addresses, values, stream_)) return nullptr;
    wait();
    for (size_t t = 0; t < problem.tensors.size(); ++t)
      if (problem.tensors[t].role == op::Role::kOutput)
        check_against(problem.tensors[t], checked.tensors[t], values[t]);
    return result;
  }

  RowReport compare(const op::Problem& problem, int index, const op::Symmetry& symmetry,
                    const ExpectedOnDevice& expected, Span got, const std::vector<std::byte>* initial) override {
    const op::Tensor& tensor = problem.tensors[static_cast<size_t>(index)];
    const ExpectedRows& rows = static_cast<const CudaExpected&>(expected).tensors[static_cast<size_t>(index)];
    const UploadedMap uploaded = upload_map(tensor, index, symmetry);
    DeviceMemory before;
    if (initial != nullptr) before = DeviceMemory(*initial);
    RowRule rule{tensor.rule == op::OutputRule::kRelativeL2Row,
                 tensor.limit,
                 rows.values.as<const float>(),
                 rows.has_known ? rows.known.as<const uint8_t>() : nullptr,
                 rows.has_unchanged ? rows.unchanged.as<const uint8_t>() : nullptr,
                 before.get()};
    RowTotals totals{0, 0, ~0ull, 0, 0};
    KS_CUDA(cudaMemcpyAsync(totals_.get(), &totals, sizeof totals, cudaMemcpyHostToDevice, stream_));
    compare_rows(uploaded.map, rule, at(got), totals_.as<RowTotals>(), stream_);
    KS_CUDA(cudaGetLastError());
    KS_CUDA(cudaMemcpyAsync(&totals, totals_.get(), sizeof totals, cudaMemcpyDeviceToHost, stream_));
    wait();
    RowReport report;
    report.rows = static_cast<int64_t>(totals.rows);
    report.failures = static_cast<int64_t>(totals.failures);
    report.mean = totals.rows > 0 ? totals.sum / static_cast<double>(totals.rows) : 0;
    float worst = 0;
    std::memcpy(&worst, &totals.worst_bits, sizeof worst);
    report.worst = worst;
    if (totals.failures > 0)
      report.where = op::row_name(tensor, static_cast<int64_t>(totals.first_failure)) +
                     fmt::format(" (row error up to {:.3g}, at most {:.3g})", report.worst, tensor.limit);
    return report;
  }

 private:
  struct Arena {
    void* data = nullptr;
    uint64_t bytes = 0;
    bool writable = false;
  };
  void* at(Span span) const {
    const Arena& arena = arenas_.at(span.arena);
    KS_CHECK(span.offset + span.bytes <= arena.bytes, "a span lies in its arena");
    return static_cast<std::byte*>(arena.data) + span.offset;
  }
  /// The float32 answer must agree with the float64 one far better than any limit.
  static void check_against(const op::Tensor& tensor, const op::Expected::Rows& checked, const float* values) {
    const auto columns = static_cast<size_t>(op::column_count(tensor));
    std::vector<float> row(columns);
    for (size_t r = 0; r < checked.known.size(); ++r) {
      if (checked.known[r] == 0) continue;
      KS_CUDA(cudaMemcpy(row.data(), values + r * columns, columns * sizeof(float), cudaMemcpyDeviceToHost));
      const float* want = checked.values.data() + r * columns;
      double difference = 0, norm = 0;
      for (size_t c = 0; c < columns; ++c) {
        if (row[c] == want[c]) continue;
        difference += std::pow(static_cast<double>(row[c]) - static_cast<double>(want[c]), 2);
        norm += std::pow(static_cast<double>(want[c]), 2);
      }
      const double error = tensor.rule == op::OutputRule::kAbsolute ? std::sqrt(difference)
                                                                    : std::sqrt(difference / std::max(norm, 1e-300));
      if (difference != 0 && !(error <= 0.1 * tensor.limit))
        throw Error("the GPU's reference disagrees with the float64 one at {}: {:.3g} (at most {:.3g})",
                    op::row_name(tensor, static_cast<int64_t>(r)), error, 0.1 * tensor.limit);
    }
  }

  void wait() const { KS_CUDA(cudaStreamSynchronize(stream_)); }

  template <typename Launch>
  uint64_t count(const Launch& launch) {
    unsigned long long value = 0;
    KS_CUDA(cudaMemsetAsync(counter_.get(), 0, sizeof value, stream_));
    launch(counter_.as<unsigned long long>());
    KS_CUDA(cudaGetLastError());
    KS_CUDA(cudaMemcpyAsync(&value, counter_.get(), sizeof value, cudaMemcpyDeviceToHost, stream_));
    wait();
    return value;
  }

  int ordinal_;
  cudaDeviceProp properties_{};
  cudaStream_t stream_ = nullptr;
  DeviceMemory counter_, totals_;
  int next_ = 1;
  std::map<int, Arena> arenas_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(int ordinal) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) throw Error("no GPU can be used here: {}", cudaGetErrorString(status));
  if (ordinal >= count) throw Error("GPU {} was asked for, there are {}", ordinal, count);
  return std::make_unique<CudaDevice>(ordinal);
}

}  // namespace ks::device
