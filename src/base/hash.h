// Hashes: SHA-256 (OpenSSL) for sources and provenance, XXH3 for buffers at memory speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ks::base {

/// Lower-case hex SHA-256 of `data`.
std::string sha256_hex(std::string_view data);

/// 64-bit XXH3 of a buffer, keyed by `seed`: fast and not forgeable without the seed for our purpose.
uint64_t buffer_hash(const void* data, size_t bytes, uint64_t seed);

/// A seed from the kernel's random source.
uint64_t secret_seed();

/// SplitMix64 of (seed, index): the project's counter-based random numbers, equal on every machine.
constexpr uint64_t mix64(uint64_t seed, uint64_t index) {
  uint64_t z = seed + 0x9E3779B97F4A7C15ull * (index + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

/// A sequence of random numbers from a seed; value semantics, equal on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint64_t next() { return mix64(seed_, index_++); }
  /// Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound) { return next() % bound; }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t seed_;
  uint64_t index_ = 0;
};

}  // namespace ks::base
