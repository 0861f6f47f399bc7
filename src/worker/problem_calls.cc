#include "worker/problem_calls.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/clock.h"

namespace ks::worker {
namespace {

constexpr size_t kMaxStructBytes = 1 << 16;
constexpr const char* kOrigin = "request";

int nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::vector<std::byte> bytes_from_hex(const std::string& hex, const char* what, size_t at_least) {
  if (hex.size() % 2 != 0 || hex.size() / 2 < at_least || hex.size() / 2 > kMaxStructBytes)
    throw Error("request: \"{}\" has {} hex digits", what, hex.size());
  std::vector<std::byte> bytes(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0) throw Error("request: \"{}\" is not lower-case hex", what);
    bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return bytes;
}

std::vector<std::byte> shape_bytes(const Json& request) {
  return bytes_from_hex(base::require<std::string>(request, "shape", kOrigin), "shape", sizeof(ks_header));
}

/// [arena, offset] as an address; null for an absent or empty buffer.
void* place(const Json& set, const char* key, uint64_t bytes, const WorkerDevice& device) {
  if (bytes == 0) return nullptr;
  const auto span = base::require<std::vector<int64_t>>(set, key, kOrigin);
  if (span.size() != 2) throw Error("request: \"{}\" of a set must be [arena, offset]", key);
  return device.address(static_cast<int>(span[0]), static_cast<uint64_t>(span[1]), bytes);
}

}  // namespace

Pages::Pages(size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  bytes_ = (bytes + page - 1) / page * page;
  void* data = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw Error("no memory for {} bytes", bytes_);
  data_ = static_cast<std::byte*>(data);
}

Pages::~Pages() {
  ::munmap(data_, bytes_);
}

void Pages::make_read_only() {
  ::mprotect(data_, bytes_, PROT_READ);
}

ProblemCalls::ProblemCalls(const Json& request, const NativeLibrary& library)
    : shape_(shape_bytes(request).size()), plan_(KS_PLAN_BYTES) {
  const auto shape = shape_bytes(request);
  std::memcpy(shape_.data(), shape.data(), shape.size());
  shape_.make_read_only();
  blank_call_ = bytes_from_hex(base::require<std::string>(request, "call", kOrigin), "call", sizeof(ks_context));
  read_tensors(base::require<Json>(request, "tensors", kOrigin));

  ks_status status = library.sizes(shape_.data(), &reply_.sizes);
  const char* asked = "ks_sizes";
  if (status == KS_OK) {
    asked = "ks_plan";
    const int64_t start = base::monotonic_ns();
    status = library.plan(shape_.data(), plan_.data());
    reply_.plan_ns = base::monotonic_ns() - start;
    plan_.make_read_only();
  }
  if (status != KS_OK && status != KS_UNSUPPORTED) throw Error("{} answered {}", asked, status);
  reply_.supported = status == KS_OK;
  if (!reply_.supported) reply_.reason = std::string(asked) + " says that this shape is not supported";
}

void ProblemCalls::read_tensors(const Json& tensors) {
  for (const auto& entry : tensors) {
    Tensor tensor;
    tensor.bytes = base::require<uint64_t>(entry, "bytes", kOrigin);
    for (const auto& pair : base::require<std::vector<std::vector<uint64_t>>>(entry, "slots", kOrigin)) {
      if (pair.size() != 2 || pair[0] + sizeof(void*) > blank_call_.size() || pair[0] < sizeof(ks_context))
        throw Error("request: a slot of a tensor does not lie in the CALL struct");
      tensor.slots.push_back({static_cast<uint32_t>(pair[0]), pair[1]});
    }
    tensors_.push_back(std::move(tensor));
  }
}

std::vector<std::byte> ProblemCalls::make_call(const Json& set, const WorkerDevice& device) const {
  std::vector<std::byte> call = blank_call_;
  const auto places = base::require<std::vector<std::vector<int64_t>>>(set, "tensors", kOrigin);
  if (places.size() != tensors_.size())
    throw Error("request: a set has {} tensors, the shape has {}", places.size(), tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (places[i].size() != 2) throw Error("request: a tensor of a set must be [arena, offset]");
    auto* start = static_cast<std::byte*>(
        device.address(static_cast<int>(places[i][0]), static_cast<uint64_t>(places[i][1]), tensors_[i].bytes));
    for (const auto& slot : tensors_[i].slots) {
      const void* pointer = start + slot.byte_offset;
      std::memcpy(call.data() + slot.call_offset, &pointer, sizeof pointer);
    }
  }
  ks_context context;
  std::memcpy(&context, call.data(), sizeof context);
  context.shape = shape_.data();
  context.plan = plan_.data();
  context.scratch = place(set, "scratch", reply_.sizes.scratch_bytes, device);
  context.state = place(set, "state", reply_.sizes.state_bytes, device);
  context.schedule = place(set, "schedule", reply_.sizes.schedule_bytes, device);
  device.fill_context(context);
  std::memcpy(call.data(), &context, sizeof context);
  return call;
}

void ProblemCalls::use_sets(const Json& sets, const WorkerDevice& device) {
  calls_.clear();
  for (const auto& set : sets) calls_.push_back(make_call(set, device));
}

const void* ProblemCalls::call(int set) const {
  if (set < 0 || static_cast<size_t>(set) >= calls_.size()) throw Error("request: there is no set {}", set);
  return calls_[static_cast<size_t>(set)].data();
}

}  // namespace ks::worker
