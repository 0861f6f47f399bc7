// Moves the columns of rows at memory speed: a permutation, then a factor for each column. Prepared once for a tensor,
// used on each of its rows. Where the processor has AVX-512, columns are permuted in registers; elsewhere one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace ks::op {

class ColumnMover {
 public:
  /// New column c is factor[c] * old column source[c]. An empty `source` is the identity, an empty `factor` all ones.
  ColumnMover(core::Dtype dtype, size_t columns, const std::vector<int32_t>& source, const std::vector<float>& factor);

  void move(const std::byte* from, std::byte* to) const;
  /// The same, and the new row does not displace what is in cache: for filling memory that is read much later.
  void move_past_cache(const std::byte* from, std::byte* to) const;
  size_t row_bytes() const { return columns_ * element_; }
  bool is_identity() const { return source_.empty() && factor_.empty(); }

 private:
  void plan_registers();
  void permute(const std::byte* from, std::byte* to) const;
  void apply_factors(std::byte* row) const;

  core::Dtype dtype_;
  size_t columns_, element_;
  std::vector<int32_t> source_;
  std::vector<float> factor_;
  bool only_signs_ = false;
  std::vector<std::byte> flips_;  ///< sign bits to flip, element by element

  // For permuting in registers: lane numbers within a pair of source vectors, and for each vector of the result and
  // each pair which lanes come from there.
  bool in_registers_ = false;
  std::vector<std::byte> lanes_;
  std::vector<uint64_t> masks_;
};

/// To be called by a thread after its last move_past_cache, before others read what it wrote.
void finish_moves_past_cache();

}  // namespace ks::op
