// The inner loops of the fast reference, in float64 vectors: a small matrix product, exponentials of a row, widening
// rows of any element type. One copy for each instruction set, chosen when the process first asks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace ks::attention_fwd {

inline constexpr int64_t kTileStepRows = 4;     ///< multiply_add wants a multiple of this many rows
inline constexpr int64_t kTileStepColumns = 8;  ///< and of this many columns

/// A matrix in memory: `data[row * stride + column]`.
struct Matrix {
  double* data;
  int64_t stride;
};

/// c += a * b with a of rows x inner and b of inner x columns.
void multiply_add(Matrix c, Matrix a, Matrix b, int64_t rows, int64_t inner, int64_t columns);

/// Replaces x by exp(x - largest), 0 where x is below -1e299 (masked), and gives the sum. `count` is a multiple of 8.
double exponentials(double* x, int64_t count, double largest);

/// Replaces x by cap * tanh(x / cap). `count` is a multiple of 8.
void cap_scores(double* x, int64_t count, double cap);

/// `count` elements as doubles.
void widen(const std::byte* from, core::Dtype dtype, int64_t count, double* to);

/// `count` elements as doubles, `stride` apart: a key becomes a column.
void widen_into_column(const std::byte* from, core::Dtype dtype, int64_t count, double* to, int64_t stride);

}  // namespace ks::attention_fwd
