// What every family needs from the device and the driver on the host side: tensor maps, attributes that are read once.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

namespace ks::fa3 {

/// A tensor map before its address is known.
struct MapSpec {
  cuuint64_t dims[5];
  cuuint64_t strides[4];  ///< bytes, of dims 1 to rank - 1
  cuuint32_t box[5];
  int rank = 4;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
};

/// Encodes a map of elements of `type`; `stand_in` is used where the tensor is empty and may have no address.
bool encode_map(CUtensorMap& map, const MapSpec& spec, CUtensorMapDataType type, const void* base,
                const void* stand_in);

inline constexpr int kMaxDevices = 64;

/// Multiprocessors of a device, 0 <= device < kMaxDevices, asked for once.
int multiprocessors(int device);

/// Of the device that is current; 1 if there is none.
int multiprocessors_of_current_device();

/// What must be done once a device before a kernel's first launch (allowing it its shared memory), kept by bits.
/// Threads may race here: what is done must be idempotent.
class OnceADevice {
 public:
  template <typename Work>
  bool run(int device, Work&& work) {
    const uint64_t bit = uint64_t{1} << device;
    if (done_.load(std::memory_order_acquire) & bit) return true;
    if (!work()) return false;
    done_.fetch_or(bit, std::memory_order_release);
    return true;
  }

 private:
  std::atomic<uint64_t> done_{0};
};

}  // namespace ks::fa3
