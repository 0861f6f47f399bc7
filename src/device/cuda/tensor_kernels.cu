// The kernels behind tensor_kernels.h: each row of a tensor belongs to one warp, each word to one thread. They run at
// memory speed or near it; nothing here is clever.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "device/cuda/tensor_kernels.h"

namespace ks::device {
namespace {

constexpr int kThreads = 256;
constexpr int kF32 = 1, kF16 = 2, kBf16 = 3, kE4m3 = 4;  // core::Dtype

unsigned int blocks_for(uint64_t items) {
  const uint64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned int>(blocks < 1 ? 1 : (blocks > 132 * 16 ? 132 * 16 : blocks));
}

__device__ uint64_t mix(uint64_t seed, uint64_t index) {
  uint64_t z = seed + 0x9E3779B97F4A7C15ull * (index + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

__device__ float load(const void* data, int dtype, int64_t i) {
  switch (dtype) {
    case kF32: return static_cast<const float*>(data)[i];
    case kF16: return __half2float(static_cast<const __half*>(data)[i]);
    case kBf16: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case kE4m3: return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
    default: return static_cast<float>(static_cast<const int32_t*>(data)[i]);
  }
}

__device__ void copy_scaled(const void* from, int64_t i, void* to, int64_t j, int dtype, const float* factor, int64_t column) {
  if (dtype == kE4m3) {
    const auto raw = static_cast<const uint8_t*>(from)[i];
    static_cast<uint8_t*>(to)[j] =
        factor != nullptr ? static_cast<uint8_t>(__nv_fp8_e4m3(load(from, dtype, i) * factor[column]).__x) : raw;
  } else if (dtype == kF16 || dtype == kBf16) {
    const auto raw = static_cast<const uint16_t*>(from)[i];
    uint16_t value = raw;
    if (factor != nullptr && dtype == kF16) value = __half_as_ushort(__float2half(load(from, dtype, i) * factor[column]));
    if (factor != nullptr && dtype == kBf16) value = __bfloat16_as_ushort(__float2bfloat16(load(from, dtype, i) * factor[column]));
    static_cast<uint16_t*>(to)[j] = value;
  } else {
    const auto raw = static_cast<const uint32_t*>(from)[i];
    static_cast<uint32_t*>(to)[j] =
        factor != nullptr && dtype == kF32 ? __float_as_uint(__uint_as_float(raw) * factor[column]) : raw;
  }
}

/// Where a row lies, and its source: element offsets, and the dense number of the source row.
struct RowPlace {
  int64_t offset = 0, source_offset = 0, source_row = 0;
};

__device__ RowPlace place_row(const TensorMap& map, int64_t row) {
  int64_t index[kMaxAxes];
  for (int a = map.axes - 2; a >= 0; --a) {
    index[a] = row % map.shape[a];
    row /= map.shape[a];
  }
  RowPlace place;
  for (int a = 0; a < map.axes - 1; ++a) {
    const int64_t source = map.source[a] != nullptr ? map.source[a][index[a]] : index[a];
    place.offset += index[a] * map.strides[a];
    place.source_offset += source * map.strides[a];
    place.source_row = place.source_row * map.shape[a] + source;
  }
  return place;
}

__host__ __device__ int64_t rows_of(const TensorMap& map) {
  int64_t rows = 1;
  for (int a = 0; a < map.axes - 1; ++a) rows *= map.shape[a];
  return rows;
}

__global__ void fill_kernel(uint32_t* data, uint64_t words, uint32_t word) {
  for (uint64_t i = blockIdx.x * static_cast<uint64_t>(kThreads) + threadIdx.x; i < words; i += static_cast<uint64_t>(gridDim.x) * kThreads)
    data[i] = word;
}

__global__ void count_kernel(const uint32_t* data, uint64_t words, uint32_t word, unsigned long long* different) {
  unsigned long long mine = 0;
  for (uint64_t i = blockIdx.x * static_cast<uint64_t>(kThreads) + threadIdx.x; i < words; i += static_cast<uint64_t>(gridDim.x) * kThreads)
    mine += data[i] != word;
  if (mine != 0) atomicAdd(different, mine);
}

__global__ void hash_kernel(const uint8_t* data, uint64_t bytes, uint64_t seed, unsigned long long* sum) {
  const uint64_t words = bytes / 8;
  unsigned long long mine = 0;
  const uint64_t start = blockIdx.x * static_cast<uint64_t>(kThreads) + threadIdx.x;
  for (uint64_t i = start; i < words; i += static_cast<uint64_t>(gridDim.x) * kThreads)
    mine += mix(seed ^ reinterpret_cast<const uint64_t*>(data)[i], i);
  if (start == 0)
    for (uint64_t i = words * 8; i < bytes; ++i) mine += mix(seed ^ data[i], i);
  for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(0xFFFFFFFFu, mine, step);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

__global__ void move_kernel(TensorMap map, const void* from, void* to) {
  const int lane = threadIdx.x % 32;
  const int last = map.axes - 1;
  const int64_t rows = rows_of(map), columns = map.shape[last];
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  for (int64_t row = blockIdx.x * static_cast<int64_t>(kThreads / 32) + threadIdx.x / 32; row < rows; row += warps) {
    const RowPlace place = place_row(map, row);
    for (int64_t c = lane; c < columns; c += 32) {
      const int64_t source = map.source[last] != nullptr ? map.source[last][c] : c;
      copy_scaled(from, place.source_offset + source, to, place.offset + c, map.dtype, map.factor, c);
    }
  }
}

__global__ void compare_kernel(TensorMap map, RowRule rule, const void* got, RowTotals* totals) {
  const int lane = threadIdx.x % 32;
  const int last = map.axes - 1;
  const int64_t rows = rows_of(map), columns = map.shape[last];
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  for (int64_t row = blockIdx.x * static_cast<int64_t>(kThreads / 32) + threadIdx.x / 32; row < rows; row += warps) {
    const RowPlace place = place_row(map, row);
    const bool keep = rule.unchanged != nullptr && rule.unchanged[place.source_row] != 0;
    if (!keep && rule.known != nullptr && rule.known[place.source_row] == 0) continue;
    float difference = 0, norm = 0;
    for (int64_t c = lane; c < columns; c += 32) {
      const float have = load(got, map.dtype, place.offset + c);
      float want;
      if (keep) {
        want = load(rule.initial, map.dtype, place.offset + c);
        // NaN in slack must stay the same bits; as values they would never compare equal.
        difference += (have == want || (have != have && want != want)) ? 0.0f : INFINITY;
        continue;
      }
      const int64_t source = map.source[last] != nullptr ? map.source[last][c] : c;
      want = rule.want[place.source_row * columns + source];
      if (map.factor != nullptr) want *= map.factor[c];
      const float d = have == want ? 0.0f : have - want;
      if (rule.relative) {
        difference += d * d;
        norm += want * want;
      } else {
        difference = d == d ? fmaxf(difference, fabsf(d)) : INFINITY;
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFu, difference, step);
      difference = (rule.relative || keep) ? difference + other : fmaxf(difference, other);
      norm += __shfl_xor_sync(0xFFFFFFFFu, norm, step);
    }
    if (lane != 0) continue;
    float error = difference;
    if (rule.relative && !keep) error = norm > 0 ? sqrtf(difference / norm) : (difference == 0 ? 0.0f : INFINITY);
    if (error != error) error = INFINITY;
    atomicAdd(&totals->rows, 1ull);
    atomicAdd(&totals->sum, static_cast<double>(error));
    atomicMax(&totals->worst_bits, __float_as_uint(error));
    if (!(error <= (keep ? 0.0f : static_cast<float>(rule.limit)))) {
      atomicAdd(&totals->failures, 1ull);
      atomicMin(&totals->first_failure, static_cast<unsigned long long>(row));
    }
  }
}

}  // namespace

void fill_words(void* data, uint64_t words, uint32_t word, cudaStream_t stream) {
  if (words > 0) fill_kernel<<<blocks_for(words), kThreads, 0, stream>>>(static_cast<uint32_t*>(data), words, word);
}

void count_other_words(const void* data, uint64_t words, uint32_t word, unsigned long long* different, cudaStream_t stream) {
  if (words > 0) count_kernel<<<blocks_for(words), kThreads, 0, stream>>>(static_cast<const uint32_t*>(data), words, word, different);
}

void hash_bytes(const void* data, uint64_t bytes, uint64_t seed, unsigned long long* sum, cudaStream_t stream) {
  hash_kernel<<<blocks_for(bytes / 8), kThreads, 0, stream>>>(static_cast<const uint8_t*>(data), bytes, seed, sum);
}

void move_tensor(const TensorMap& map, const void* from, void* to, cudaStream_t stream) {
  move_kernel<<<blocks_for(static_cast<uint64_t>(rows_of(map)) * 32), kThreads, 0, stream>>>(map, from, to);
}

void compare_rows(const TensorMap& map, const RowRule& rule, const void* got, RowTotals* totals, cudaStream_t stream) {
  compare_kernel<<<blocks_for(static_cast<uint64_t>(rows_of(map)) * 32), kThreads, 0, stream>>>(map, rule, got, totals);
}

}  // namespace ks::device
