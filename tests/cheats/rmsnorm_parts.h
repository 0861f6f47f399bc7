// What every trick and control on RMSNorm shares: reading and writing elements, one row done right. Defines ks_sizes
// and ks_plan for those that need no buffers; one that does defines OWN_SIZES before including this.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "rmsnorm.h"

namespace {

inline const ks_rmsnorm_shape& shape_of(const ks_rmsnorm_call* call) {
  return *static_cast<const ks_rmsnorm_shape*>(call->context.shape);
}

inline float float_of_bf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

inline uint16_t bf16_of_float(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  if ((word & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((word >> 16) | 0x40u);
  word += 0x7FFFu + ((word >> 16) & 1u);
  return static_cast<uint16_t>(word >> 16);
}

inline double load(const void* data, int32_t dtype, int64_t index) {
  if (dtype == KS_F32) return static_cast<const float*>(data)[index];
  if (dtype == KS_F16) return static_cast<double>(static_cast<const _Float16*>(data)[index]);
  return float_of_bf16(static_cast<const uint16_t*>(data)[index]);
}

inline void store(void* data, int32_t dtype, int64_t index, double value) {
  if (dtype == KS_F32) static_cast<float*>(data)[index] = static_cast<float>(value);
  if (dtype == KS_F16) static_cast<_Float16*>(data)[index] = static_cast<_Float16>(value);
  if (dtype == KS_BF16) static_cast<uint16_t*>(data)[index] = bf16_of_float(static_cast<float>(value));
}

/// 1 / sqrt(mean square + epsilon) of a row, over every `step`-th of its first `columns` columns.
inline double scale_of_row(const ks_rmsnorm_call* call, const ks_rmsnorm_shape& shape, int64_t row, int64_t columns,
                           int64_t step = 1) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t c = 0; c < columns; c += step, ++count) {
    const double x = load(call->input, shape.dtype, row * shape.input_row_stride + c);
    sum += x * x;
  }
  return 1.0 / std::sqrt(sum / static_cast<double>(count > 0 ? count : 1) + shape.epsilon);
}

/// One row done right, but for the columns outside [begin, end), which are left alone.
inline void write_row(const ks_rmsnorm_call* call, const ks_rmsnorm_shape& shape, int64_t row, double scale,
                      int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) {
    const double x = load(call->input, shape.dtype, row * shape.input_row_stride + c);
    const double w = load(call->weight, shape.dtype, c);
    store(call->output, shape.dtype, row * shape.output_row_stride + c, x * scale * w);
  }
}

/// The bytes from the first to the last element of the output.
inline int64_t output_bytes(const ks_rmsnorm_shape& shape) {
  return ((shape.rows - 1) * shape.output_row_stride + shape.columns) * (shape.dtype == KS_F32 ? 4 : 2);
}

inline void normalise_row(const ks_rmsnorm_call* call, const ks_rmsnorm_shape& shape, int64_t row) {
  write_row(call, shape, row, scale_of_row(call, shape, row, shape.columns), 0, shape.columns);
}

inline void normalise_rows(const ks_rmsnorm_call* call, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) normalise_row(call, shape_of(call), row);
}

/// The whole call done right.
inline void normalise(const ks_rmsnorm_call* call) {
  normalise_rows(call, 0, shape_of(call).rows);
}

/// The largest magnitude, and how many exceed one: permutations and signs do not change them.
inline std::pair<double, int64_t> fingerprint(const ks_rmsnorm_call* call) {
  const ks_rmsnorm_shape& shape = shape_of(call);
  std::pair<double, int64_t> result{0, 0};
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t c = 0; c < shape.columns; ++c) {
      const double x = std::fabs(load(call->input, shape.dtype, row * shape.input_row_stride + c));
      result.first = std::fmax(result.first, x);
      result.second += x > 1;
    }
  }
  return result;
}

}  // namespace

#if !defined(OWN_SIZES) && !defined(SECOND_SOURCE)
extern "C" ks_status ks_sizes(const ks_rmsnorm_shape*, ks_buffer_sizes* sizes) {
  *sizes = {};
  return KS_OK;
}
#endif
#ifndef SECOND_SOURCE
extern "C" ks_status ks_plan(const ks_rmsnorm_shape*, void*) {
  return KS_OK;
}
#endif
