// Shared memory of the MLA kernel, its fixed sizes, and what the load warp tells the others. See mla.cuh.
#pragma once

#include "kernels/fa3_hopper/mla/params.h"
#include "kernels/ptx/ldst.cuh"
#include "kernels/tile/element.h"
#include "kernels/tile/ring.cuh"
#include "kernels/tile/smem_tile.cuh"

namespace ks::fa3::mla {

using tile::Element;
using tile::RingPosition;

// 4. The configuration.
inline constexpr int kRows = 64;
inline constexpr int kBlockKeys = 64;
inline constexpr int kKeyDim = 576;
inline constexpr int kValueDim = 512;
inline constexpr int kThreads = 384;

struct MlaConfig {
  Element type;
  int cluster;      ///< blocks of threads that share keys: 1 or 2
  int early_slabs;  ///< slabs of the next scores that are issued before the other group's weights are waited for

  constexpr bool is_valid() const { return (cluster == 1 || cluster == 2) && early_slabs >= 0 && early_slabs < 9; }
};

// 5. Shared memory.

/// A run of key blocks of one tile of query rows.
struct Part {
  int member;  ///< -1: no part is left
  int group;
  int first_position;
  int rows;
  int keys;
  int row_base;
  int key_base;
  int first_block;
  int blocks;  ///< that are visible; may be none
  int first_worker;
  int parts;  ///< in which the tile's keys lie; 1: all here
};

struct alignas(1024) Smem {
  using QTile = tile::SmemTile<kRows, kKeyDim>;
  using KTile = tile::SmemTile<kBlockKeys, kKeyDim>;
  using PTile = tile::SmemTile<kRows, kBlockKeys>;  // over the last slab of KTile
  static constexpr int kValueSlabs = kValueDim / 64;

  unsigned char sQ[QTile::kBytes];
  unsigned char sK[2][KTile::kBytes];
  uint64_t full_barriers[2][KTile::kSlabs];
  uint64_t empty_barriers[2][2];
  tile::Ring<1> q;
  tile::Ring<2> parts;
  Part part[2];
  float row_max[kRows];
  float row_alpha[2][kRows];
  float row_sum[2][2][kRows];  ///< by turns of parts
  int last_part;

  __device__ __forceinline__ uint32_t full(int slot, int slab) const {
    return ptx::cvta_shared(&full_barriers[slot][slab]);
  }
  __device__ __forceinline__ uint32_t empty(int slot, int group) const {
    return ptx::cvta_shared(&empty_barriers[slot][group]);
  }
};
static_assert(sizeof(Smem) <= 232448);

namespace barrier_id {
inline constexpr int kReady = 1;  // + owner
inline constexpr int kBoth = 3;
inline constexpr int kGroup = 4;  // + group
}  // namespace barrier_id

}  // namespace ks::fa3::mla
