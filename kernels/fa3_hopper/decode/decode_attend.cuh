// The compute warps of a decode block: scores, softmax and output of 16 keys of every block a warp.
#pragma once

#include "kernels/attention/parts/online_softmax.cuh"
#include "kernels/fa3_hopper/decode/decode_smem.cuh"
#include "kernels/ptx/fence.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/tile/expand_e4m3.cuh"
#include "kernels/tile/matmul.cuh"

namespace ks::fa3 {

template <DecodeConfig kC>
class DecodeAttender {
 public:
  __device__ __forceinline__ DecodeAttender(const DecodeParams& params, DecodeSmem<kC>& smem)
      : params_(params), smem_(smem), warp_(ptx::warp_index()), lane_(ptx::lane_index()), quad_(lane_ % 4) {
    // ldmatrix: lanes 0-7 and 8-15 address keys 0-7 and their two 16-byte chunks, lanes 16-31 keys 8-15.
    const int key = warp_ * 16 + lane_ / 16 * 8 + lane_ % 8;
    const int granule = params.slot_granule;
    const int in_chunk = key % granule;
    const int base = (key - in_chunk) * kC.row_bytes() + in_chunk * kC.slab_bytes() + lane_ / 8 % 2 * 16;
#pragma unroll
    for (int slab = 0; slab < kC.slabs(); ++slab) {
      key_offset_[slab] = swizzled(base + slab * granule * kC.slab_bytes(), kC.slab_bytes());
    }
  }

  __device__ __forceinline__ void run() {
    while (true) {
      smem_.pieces.wait_full(pieces_);
      const DecodePiece piece = smem_.piece[pieces_.slot];
      if (piece.member < 0) break;
      first_worker_ = piece.shares.worker_of(piece.tile_unit);
      parts_ = piece.shares.worker_of(piece.tile_unit + piece.tile_units - 1) - first_worker_ + 1;
      attend(piece);
      finish(piece);
    }
  }

 private:
  using Config = DecodeConfig;
  static constexpr int kHalves = kC.row_tiles;               // eights of rows
  static constexpr int kRowTiles = (kC.row_tiles + 1) / 2;   // sixteens of rows
  static constexpr int kSteps = kC.dim / 16;                 // products of 16 columns
  static constexpr int kLines = kC.row_bytes() / 32;         // loads of 32 bytes of 16 keys
  static constexpr int kColumnQuads = (kC.dim + 127) / 128;  // sums of parts: 128 columns, four a lane
  static constexpr int kDeficit = kC.e4m3 ? tile::e4m3_exponent_deficit(kC.type) : 0;
  // bfloat16 has the range to take half of the deficit on Q and P beforehand; half precision needs none of it.
  static constexpr int kLift = kDeficit > 16 ? kDeficit / 2 : 0;

  static constexpr float power_of_two(int exponent) {
    float x = 1.0f;
    for (int i = 0; i < exponent; ++i) x *= 2.0f;
    for (int i = 0; i > exponent; --i) x *= 0.5f;
    return x;
  }

  __device__ __forceinline__ static void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (kC.type == Element::kBf16) ptx::mma_m16n8k16_bf16(c, a[0], a[1], a[2], a[3], b0, b1);
    if constexpr (kC.type == Element::kF16) ptx::mma_m16n8k16_f16(c, a[0], a[1], a[2], a[3], b0, b1);
  }

  __device__ __forceinline__ int position_of(int row) const {
    return static_cast<int>(static_cast<uint32_t>(row) * params_.ratio_reciprocal >> 16);
  }

  /// Fragment of 16 rows by 16 columns of Q. Against e4m3 keys, whose words hold four columns, the columns are taken in
  /// the order 4q, 4q+2 and 4q+1, 4q+3.
  __device__ __forceinline__ void load_query(uint32_t (&a)[4], int row_tile, int step) const {
    const uint32_t sQ = ptx::cvta_shared(smem_.sQ[pieces_.slot]);
    const int rows = params_.query_bytes / (2 * kC.dim);
    constexpr int kSlab = kC.query_slab_bytes();
    const int slab = step * 32 / kSlab;
    const int in_slab = step * 32 % kSlab;
    if constexpr (!kC.e4m3) {
      const int row = row_tile * 16 + lane_ % 16;
      ptx::ldmatrix_x4(a, sQ + swizzled((slab * rows + row) * kSlab + in_slab + lane_ / 16 * 16, kSlab));
      if constexpr (kHalves == 1) a[1] = a[3] = 0;
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        a[half] = a[half + 2] = 0;
        if (half >= kHalves) continue;
        const int row = row_tile * 16 + half * 8 + lane_ / 4;
        const uint2 four = ptx::ld_shared_v2(sQ + swizzled((slab * rows + row) * kSlab + in_slab + quad_ * 8, kSlab));
        a[half] = lift(ptx::prmt(four.x, four.y, 0x5410));
        a[half + 2] = lift(ptx::prmt(four.x, four.y, 0x7632));
      }
    }
  }
  __device__ __forceinline__ static uint32_t lift(uint32_t pair) {
    if constexpr (kLift == 0) return pair;
    constexpr uint32_t kPower = (127 + kLift) << 7;
    return ptx::mul_bf16x2(pair, kPower << 16 | kPower);
  }

  /// The main loop: O^T, m and l over this warp's keys of all blocks.
  __device__ __forceinline__ void attend(const DecodePiece& piece) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      m_[half] = -INFINITY;
      l_[half] = 0.0f;
      const int position = attention::smaller(position_of(8 * half + lane_ / 4), piece.rows - 1);
      const attention::KeyRange seen = attention::visible_keys(
          position, piece.rows, piece.keys, params_.problem.window_left, params_.problem.window_right);
      seen_[half] = {attention::larger(seen.begin, piece.leftpad), seen.end};
    }
#pragma unroll
    for (int tile = 0; tile < kSteps; ++tile) {
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
#pragma unroll
        for (int i = 0; i < 4; ++i) O_[tile][half][i] = 0.0f;
      }
    }
    if constexpr (kC.e4m3) read_descales(piece);
    if constexpr (kC.holds_query()) {
#pragma unroll
      for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step) load_query(Q_[tile][step], tile, step);
      }
    }
    int first_key = piece.blocks.origin + piece.first_block * Config::kBlockKeys + warp_ * 16;
#pragma unroll 1
    for (int block = piece.first_block; block < piece.end_block; ++block) {
      if (block >= piece.blocks.first_plain && block < piece.blocks.end_plain) {
        turn<false>(piece, first_key);
      } else {
        turn<true>(piece, first_key);
      }
      first_key += Config::kBlockKeys;
    }
  }

  __device__ __forceinline__ void read_descales(const DecodePiece& piece) {
    score_factor_ = power_of_two(kDeficit - kLift);
    value_factor_ = power_of_two(kDeficit - kLift);
    if (!params_.has_descale) return;
    const int at = piece.member * params_.descale_batch_stride + piece.kv_head * params_.descale_head_stride;
    score_factor_ *= params_.key_descale[at];
    value_factor_ *= params_.value_descale[at];
  }

  /// One block: this warp's 16 keys from first_key on.
  template <bool kMasked>
  __device__ __forceinline__ void turn(const DecodePiece& piece, int first_key) {
    float S[kRowTiles][2][4];
    uint32_t P[kHalves][2];
    const bool any = !kMasked || (first_key < piece.blocks.end && first_key + 16 > piece.blocks.begin);
    smem_.kv.wait_full(kv_);
    if (any) score(S);  // (1)
    ptx::sync_warp();
    smem_.kv.release(kv_);
    kv_.advance();
    if (any) weigh<kMasked>(S, P, first_key);  // (2), (3)
    smem_.kv.wait_full(kv_);
    if (any) add_values<kMasked>(piece, P, first_key);  // (4)
    ptx::sync_warp();
    smem_.kv.release(kv_);
    kv_.advance();
  }

  /// (1) Two sums a score where there are few, so that products do not wait for each other.
  __device__ __forceinline__ void score(float (&S)[kRowTiles][2][4]) const {
    const uint32_t slot = ptx::cvta_shared(smem_.sKV[kv_.slot]);
    constexpr int kSums = kRowTiles == 1 ? 2 : 1;
    float sums[kSums][kRowTiles][2][4] = {};
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      uint32_t words[4];
      ptx::ldmatrix_x4(words, line_address(slot, line));
      if constexpr (!kC.e4m3) {
        score_step(sums[line % kSums], line, words[0], words[1], words[2], words[3]);
      } else {
        score_step(sums[0], 2 * line, even(words[0]), odd(words[0]), even(words[2]), odd(words[2]));
        score_step(sums[kSums - 1], 2 * line + 1, even(words[1]), odd(words[1]), even(words[3]), odd(words[3]));
      }
    }
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
#pragma unroll
      for (int eight = 0; eight < 2; ++eight) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          S[tile][eight][i] = sums[0][tile][eight][i];
          if constexpr (kSums == 2) S[tile][eight][i] += sums[1][tile][eight][i];
        }
      }
    }
  }
  /// 16 columns of all rows with 16 keys: (b0, b1) of keys 0-7 and (b2, b3) of keys 8-15.
  __device__ __forceinline__ void score_step(float (&S)[kRowTiles][2][4], int step, uint32_t b0, uint32_t b1,
                                             uint32_t b2, uint32_t b3) const {
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      if constexpr (kC.holds_query()) {
        multiply(S[tile][0], Q_[tile][step], b0, b1);
        multiply(S[tile][1], Q_[tile][step], b2, b3);
      } else {
        uint32_t a[4];
        load_query(a, tile, step);
        multiply(S[tile][0], a, b0, b1);
        multiply(S[tile][1], a, b2, b3);
      }
    }
  }
  __device__ __forceinline__ static uint32_t even(uint32_t word) {
    return tile::expand_even_e4m3<kC.type>(word);
  }
  __device__ __forceinline__ static uint32_t odd(uint32_t word) {
    return tile::expand_odd_e4m3<kC.type>(word);
  }

  /// Where this lane's row of a 32-byte line of its warp's 16 keys (or values) lies.
  __device__ __forceinline__ uint32_t line_address(uint32_t slot, int line) const {
    constexpr int kLinesPerSlab = kC.slab_bytes() / 32;
    const int in_slab = line % kLinesPerSlab * 32;
    const uint32_t offset = key_offset_[line / kLinesPerSlab];
    return slot + (kC.slab_bytes() == 128 || kC.slab_bytes() == 64 ? offset ^ in_slab : offset + in_slab);
  }

  /// (2), (3): S becomes P, packed as the second operand of the output product.
  template <bool kMasked>
  __device__ __forceinline__ void weigh(float (&S)[kRowTiles][2][4], uint32_t (&P)[kHalves][2], int first_key) {
    float alpha[kHalves];
    bool moved = false;
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      float s[4];  // keys 2q, 2q+1, 2q+8, 2q+9 of the lane's row
#pragma unroll
      for (int i = 0; i < 4; ++i) s[i] = S[half / 2][i / 2][half % 2 * 2 + i % 2];
      if constexpr (kC.e4m3) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[i] *= score_factor_;
      }
      if (params_.cap_scale > 0.0f) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[i] = ptx::tanh_approx(s[i] * params_.cap_scale);
      }
      if constexpr (kMasked) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = first_key + 2 * quad_ + i % 2 + i / 2 * 8;
          if (key < seen_[half].begin || key >= seen_[half].end) s[i] = -INFINITY;
        }
      }
      const float top = attention::quad_max(fmaxf(fmaxf(m_[half], fmaxf(s[0], s[1])), fmaxf(s[2], s[3])));
      const float safe = kMasked && top == -INFINITY ? 0.0f : top;
      alpha[half] = ptx::ex2_approx((m_[half] - safe) * params_.scale_log2);
      moved |= alpha[half] != 1.0f;
      m_[half] = top;
      const float shift = safe * params_.scale_log2 - kLift;
#pragma unroll
      for (int i = 0; i < 4; ++i) s[i] = ptx::ex2_approx(fmaf(s[i], params_.scale_log2, -shift));
      l_[half] = fmaf(l_[half], alpha[half], (s[0] + s[1]) + (s[2] + s[3]));
      P[half][0] = tile::pack<kC.type>(s[0], s[1]);
      P[half][1] = tile::pack<kC.type>(s[2], s[3]);
    }
    if (ptx::any(moved)) rescale(alpha);
  }

  /// O^T has rows as columns: a lane holds rows 2q and 2q+1 of each eight.
  __device__ __forceinline__ void rescale(const float (&alpha)[kHalves]) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const float factor[2] = {ptx::shfl(alpha[half], quad_ * 8), ptx::shfl(alpha[half], quad_ * 8 + 4)};
#pragma unroll
      for (int tile = 0; tile < kSteps; ++tile) {
#pragma unroll
        for (int i = 0; i < 4; ++i) O_[tile][half][i] *= factor[i % 2];
      }
    }
  }

  /// (4) Values that no row sees may be anything, and 0 x NaN is NaN: they are zeroed on their way (expanded e4m3
  /// values are always numbers).
  template <bool kMasked>
  __device__ __forceinline__ void add_values(const DecodePiece& piece, const uint32_t (&P)[kHalves][2], int first_key) {
    const uint32_t slot = ptx::cvta_shared(smem_.sKV[kv_.slot]);
    uint32_t keep[2] = {0xffffffffu, 0xffffffffu};
    if constexpr (kMasked && !kC.e4m3) {
#pragma unroll
      for (int eight = 0; eight < 2; ++eight) {
        const int key = first_key + 8 * eight + 2 * quad_;
        const bool low = key >= piece.blocks.begin && key < piece.blocks.end;
        const bool high = key + 1 >= piece.blocks.begin && key + 1 < piece.blocks.end;
        keep[eight] = (low ? 0x0000ffffu : 0u) | (high ? 0xffff0000u : 0u);
      }
    }
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      uint32_t words[4];
      ptx::ldmatrix_x4_trans(words, line_address(slot, line));
      if constexpr (!kC.e4m3) {
        if constexpr (kMasked) {
          words[0] &= keep[0], words[1] &= keep[0], words[2] &= keep[1], words[3] &= keep[1];
        }
        add_tile(line, words, P);
      } else {
        const uint32_t first[4] = {even(words[0]), odd(words[0]), even(words[2]), odd(words[2])};
        const uint32_t second[4] = {even(words[1]), odd(words[1]), even(words[3]), odd(words[3])};
        add_tile(2 * line, first, P);
        add_tile(2 * line + 1, second, P);
      }
    }
  }
  __device__ __forceinline__ void add_tile(int tile, const uint32_t (&a)[4], const uint32_t (&P)[kHalves][2]) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) multiply(O_[tile][half], a, P[half][0], P[half][1]);
  }

  // decode_finish.cuh
  __device__ __forceinline__ void finish(const DecodePiece& piece);
  __device__ __forceinline__ void store_merge(int half);
  __device__ __forceinline__ void finish_rows(const DecodePiece& piece, int half);
  __device__ __forceinline__ void combine_if_last(const DecodePiece& piece);
  template <int kRows>
  __device__ __forceinline__ void combine_rows(const DecodePiece& piece, int first_row, int end_row);
  __device__ __forceinline__ void read_part(const float* row, float4 (&value)[kColumnQuads]) const;
  template <int kQuads>
  __device__ __forceinline__ void store_combined(const DecodePiece& piece, int row, float top, float total,
                                                 const float (&sum)[kQuads][4]);
  __device__ __forceinline__ float sink_of(const DecodePiece& piece, int row) const;
  __device__ __forceinline__ char* output_of(const DecodePiece& piece, int row) const;
  __device__ __forceinline__ float* lse_of(const DecodePiece& piece, int row) const;

  const DecodeParams& params_;
  DecodeSmem<kC>& smem_;
  const int warp_;
  const int lane_;
  const int quad_;  ///< the lane's place in its quad
  uint32_t key_offset_[kC.slabs()];
  tile::RingPosition<kC.slots()> kv_;
  tile::RingPosition<2> pieces_;
  attention::KeyRange seen_[kHalves];
  int first_worker_;           ///< of those that share the tile
  int parts_;                  ///< how many
  float score_factor_ = 1.0f;  ///< e4m3: descale and what expansion left
  float value_factor_ = 1.0f;

  uint32_t Q_[kC.holds_query() ? kRowTiles : 1][kC.holds_query() ? kSteps : 1][4];
  float O_[kSteps][kHalves][4];  ///< transposed: 16 columns by 8 rows each
  float m_[kHalves];             ///< of row l/4 of each eight, over this warp's keys
  float l_[kHalves];             ///< this lane's part
};

}  // namespace ks::fa3

#include "kernels/fa3_hopper/decode/decode_finish.cuh"
