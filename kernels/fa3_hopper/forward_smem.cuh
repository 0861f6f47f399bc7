// What the warps of a block of the forward kernel share: tiles of Q, K, V and O, the barriers that hand them over, and
// the work that is being done.
#pragma once

#include "kernels/attention/parts/schedule.cuh"
#include "kernels/attention/parts/visible_keys.h"
#include "kernels/fa3_hopper/configs.h"
#include "kernels/fa3_hopper/forward_params.h"
#include "kernels/ptx/warp.cuh"
#include "kernels/tile/ring.cuh"
#include "kernels/tile/smem_tile.cuh"

namespace ks::fa3 {

using attention::BlockPlan;
using attention::KeyLayout;
using attention::Tile;
using tile::RingPosition;

/// A tile of query rows and its key blocks. It lies in shared memory, where the load warp and the compute warps that
/// have no registers to spare read of it what they need when they need it; the others copy it.
struct Work {
  Tile tile;
  BlockPlan plan;

  __device__ __forceinline__ bool has_keys() const { return ptx::shfl(plan.end - plan.begin, 0) > 0; }
  __device__ __forceinline__ int first_key(int block, int block_keys) const { return plan.origin + block * block_keys; }
};

/// Works that may be known at a time: the one that is computed, and how far the load warp may be ahead.
inline constexpr int kWorkSlots = 4;

template <ForwardConfig kC>
struct alignas(1024) Smem {
  using QTile = tile::SmemTile<kC.rows(), kC.key_dim>;
  using KTile = tile::SmemTile<kC.block_keys, kC.key_dim>;
  using VTile = tile::SmemTile<kC.block_keys, kC.value_dim>;
  using OTile = tile::SmemTile<kC.rows(), kC.value_dim>;  // lies over QTile once its scores are done

  unsigned char sQ[kC.query_slots][QTile::kBytes];
  unsigned char sK[kC.stages][KTile::kBytes];
  unsigned char sV[kC.stages][VTile::kBytes];
  tile::Ring<kC.query_slots> q;
  tile::Ring<kC.stages> k;
  tile::Ring<kC.stages> v;
  tile::Ring<kWorkSlots> works;
  Work work[kWorkSlots];
  int last_part;  // split tiles: whether this block's part was the last
};

}  // namespace ks::fa3
