// RMS normalisation on the CPU, plainly: a pass for the sum of squares, a pass for the result.
// kernelseek: operator=rmsnorm
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "rmsnorm.h"

namespace {

constexpr int kMostThreads = 1;   // @tune kMostThreads {1, 2, 4}
constexpr int kPartialSums = 1;   // @tune kPartialSums {1, 4, 8, 16, 32}

float load(const void* data, int32_t dtype, int64_t i) {
  if (dtype == KS_F32) return static_cast<const float*>(data)[i];
  if (dtype == KS_F16) return static_cast<float>(static_cast<const _Float16*>(data)[i]);
  const uint32_t word = static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

void store(void* data, int32_t dtype, int64_t i, float value) {
  if (dtype == KS_F32) {
    static_cast<float*>(data)[i] = value;
  } else if (dtype == KS_F16) {
    static_cast<_Float16*>(data)[i] = static_cast<_Float16>(value);
  } else {
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>((word + 0x7FFF + ((word >> 16) & 1)) >> 16);
  }
}

void normalise_rows(const ks_rmsnorm_call& call, const ks_rmsnorm_shape& s, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    float sums[kPartialSums] = {};
    int c = 0;
    for (; c + kPartialSums <= s.columns; c += kPartialSums)
      for (int k = 0; k < kPartialSums; ++k) {
        const float x = load(call.input, s.dtype, r * s.input_row_stride + c + k);
        sums[k] += x * x;
      }
    double sum = 0;
    for (const float partial : sums) sum += partial;
    for (; c < s.columns; ++c) {
      const float x = load(call.input, s.dtype, r * s.input_row_stride + c);
      sum += x * x;
    }
    const auto factor = static_cast<float>(1.0 / std::sqrt(sum / s.columns + s.epsilon));
    for (int k = 0; k < s.columns; ++k)
      store(call.output, s.dtype, r * s.output_row_stride + k,
            load(call.input, s.dtype, r * s.input_row_stride + k) * factor * load(call.weight, s.dtype, k));
  }
}

}  // namespace

extern "C" {

ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = ks_buffer_sizes{};
  return KS_OK;
}

ks_status ks_plan(const ks_rmsnorm_shape*, void*) { return KS_OK; }

ks_status ks_run(const ks_rmsnorm_call* call) {
  const auto& s = *static_cast<const ks_rmsnorm_shape*>(call->context.shape);
  const int64_t count = std::clamp<int64_t>(std::min(call->context.threads, kMostThreads), 1, std::max<int64_t>(s.rows, 1));
  std::vector<std::thread> threads;
  for (int64_t t = 1; t < count; ++t)
    threads.emplace_back([&, t] { normalise_rows(*call, s, s.rows * t / count, s.rows * (t + 1) / count); });
  normalise_rows(*call, s, 0, s.rows / count);
  for (auto& thread : threads) thread.join();
  return KS_OK;
}
}
