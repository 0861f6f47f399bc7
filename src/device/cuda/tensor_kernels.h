// What the trusted side does to tensors where they lie on a GPU: fill, check, hash, move by a symmetry, compare.
// Plain structs here, so that only the .cu file needs a CUDA compiler.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ks::device {

inline constexpr int kMaxAxes = 6;

/// A strided tensor under a symmetry: pointers are device memory, null for the identity.
struct TensorMap {
  int axes = 0;  ///< the last one is the columns
  int64_t shape[kMaxAxes] = {};
  int64_t strides[kMaxAxes] = {};        ///< in elements
  const int32_t* source[kMaxAxes] = {};  ///< index maps, one an axis
  const float* factor = nullptr;         ///< of the columns
  int32_t dtype = 0;                     ///< core::Dtype
};

/// What a comparison of rows found; zeroed before.
struct RowTotals {
  unsigned long long rows, failures;
  unsigned long long first_failure;  ///< smallest failing row number (initialised to all ones)
  double sum;
  unsigned int worst_bits;  ///< float bits of the largest row error; errors are not negative
};

/// How rows are compared.
struct RowRule {
  bool relative;  ///< relative L2, else absolute
  double limit;
  const float* want;         ///< dense over the shape, before the symmetry
  const uint8_t* known;      ///< a flag a source row, or null
  const uint8_t* unchanged;  ///< a flag a source row, or null: such rows must equal `initial`
  const void* initial;
};

void fill_words(void* data, uint64_t words, uint32_t word, cudaStream_t stream);
/// Adds to *different the number of words that are not `word`.
void count_other_words(const void* data, uint64_t words, uint32_t word, unsigned long long* different,
                       cudaStream_t stream);
/// Adds to *sum a 64-bit hash of the bytes, keyed by the seed.
void hash_bytes(const void* data, uint64_t bytes, uint64_t seed, unsigned long long* sum, cudaStream_t stream);
void move_tensor(const TensorMap& map, const void* from, void* to, cudaStream_t stream);
void compare_rows(const TensorMap& map, const RowRule& rule, const void* got, RowTotals* totals, cudaStream_t stream);

}  // namespace ks::device
