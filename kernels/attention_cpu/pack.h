// Packing of a key block: keys transposed into panels of kPanelKeys (so that a vector holds one column of as many
// keys), values with their columns padded to whole vectors. Keys that no row may see are not read and packed as zeros.
#pragma once
#include "arithmetic.h"
#include "members.h"

namespace ks::attention_cpu {

/// Sizes in units of an arithmetic, for one shape.
struct Layout {
  int64_t key_units;      ///< of a row of Q or K
  int64_t value_columns;  ///< value_dim in whole vectors
  int64_t block_units;    ///< of a packed key block with its values
  int64_t values_offset;  ///< of the values in it
};

template <class Arithmetic>
Layout layout_of(const Shape& s) {
  Layout layout{};
  layout.key_units = round_up(s.key_dim, Arithmetic::kPerUnit) / Arithmetic::kPerUnit;
  layout.value_columns = round_up(s.value_dim, kLanes);
  layout.values_offset = layout.key_units * kKeyBlock;
  layout.block_units = layout.values_offset + layout.value_columns * kKeyBlock / Arithmetic::kPerUnit;
  return layout;
}

/// Copies kLanes rows of `columns` 32-bit units, transposed: to[c * kPanelKeys + r] = rows[r][c].
#if HWY_TARGET <= HWY_AVX3
inline void transpose_16(const uint32_t* rows, int64_t stride, uint32_t* to) {
  __m512i a[16], b[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r) a[r] = _mm512_loadu_si512(rows + r * stride);
#pragma GCC unroll 8
  for (int r = 0; r < 16; r += 2) {
    b[r] = _mm512_unpacklo_epi32(a[r], a[r + 1]);
    b[r + 1] = _mm512_unpackhi_epi32(a[r], a[r + 1]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 16; r += 4) {
    a[r] = _mm512_unpacklo_epi64(b[r], b[r + 2]);
    a[r + 1] = _mm512_unpackhi_epi64(b[r], b[r + 2]);
    a[r + 2] = _mm512_unpacklo_epi64(b[r + 1], b[r + 3]);
    a[r + 3] = _mm512_unpackhi_epi64(b[r + 1], b[r + 3]);
  }
  // a[4 q + c] holds, in its 128-bit lane l, column 4 l + c of rows 4 q .. 4 q + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0x88),
                  low23 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0x88);
    const __m512i high01 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0xDD);
    const __m512i high23 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0xDD);
    _mm512_storeu_si512(to + c * kPanelKeys, _mm512_shuffle_i32x4(low01, low23, 0x88));
    _mm512_storeu_si512(to + (8 + c) * kPanelKeys, _mm512_shuffle_i32x4(low01, low23, 0xDD));
    _mm512_storeu_si512(to + (4 + c) * kPanelKeys, _mm512_shuffle_i32x4(high01, high23, 0x88));
    _mm512_storeu_si512(to + (12 + c) * kPanelKeys, _mm512_shuffle_i32x4(high01, high23, 0xDD));
  }
}
#endif

inline void transpose(const uint32_t* rows, int64_t stride, int64_t columns, uint32_t* to) {
  int64_t c = 0;
#if HWY_TARGET <= HWY_AVX3
  for (; c + 16 <= columns; c += 16) transpose_16(rows + c, stride, to + c * kPanelKeys);
#endif
  for (; c < columns; ++c)
    for (int r = 0; r < kLanes; ++r) to[c * kPanelKeys + r] = rows[r * stride + c];
}

constexpr int64_t kAhead = 8;  // @tune kAhead {8, 16, 24, 32, 64}

/// Asks for a row kAhead keys further on. Rows of one head lie kilobytes apart, so that the hardware does not guess
/// them.
inline void prefetch_row(const void* data, int32_t dtype, int64_t at, int64_t columns) {
  const size_t bytes = element_bytes(dtype);
  const char* row = static_cast<const char*>(data) + static_cast<size_t>(at) * bytes;
  for (size_t byte = 0; byte < static_cast<size_t>(columns) * bytes; byte += 64) __builtin_prefetch(row + byte);
}

/// Room for kLanes unpacked rows.
template <class Arithmetic>
int64_t row_room(const Shape& s) {
  return kLanes * round_up(std::max(s.key_dim, s.value_dim) + kLanes, 2 * kLanes) / Arithmetic::kPerUnit;
}

template <class Arithmetic>
void pack_keys(const Call& call, const Shape& s, const Layout& layout, const Member& m, int64_t g, Interval readable,
               int64_t first, typename Arithmetic::Unit* room, typename Arithmetic::Unit* block) {
  using Element = typename Arithmetic::Element;
  for (int64_t j = 0; j < kKeyBlock; j += kLanes) {
    auto* to = block + j / kPanelKeys * kPanelKeys * layout.key_units + j % kPanelKeys;
    if (first + j >= readable.end || first + j + kLanes <= readable.begin) {
      for (int64_t c = 0; c < layout.key_units; ++c)
        std::memset(to + c * kPanelKeys, 0, sizeof(*to) * static_cast<size_t>(kLanes));
      continue;
    }
    for (int64_t r = 0; r < kLanes; ++r) {
      auto* row = room + r * layout.key_units;
      const int64_t key = first + j + r;
      row[layout.key_units - 1] = 0;
      if (key + kAhead < readable.end)
        prefetch_row(call.key, s.kv_dtype, key_at(call, s, m, g, key + kAhead), s.key_dim);
      if (key >= readable.begin && key < readable.end)
        load_row(call.key, s.kv_dtype, key_at(call, s, m, g, key), s.key_dim, reinterpret_cast<Element*>(row));
      else
        std::memset(row, 0, sizeof(*row) * static_cast<size_t>(layout.key_units));
    }
    transpose(reinterpret_cast<const uint32_t*>(room), layout.key_units, layout.key_units,
              reinterpret_cast<uint32_t*>(to));
  }
}

template <class Arithmetic>
void pack_values(const Call& call, const Shape& s, const Layout& layout, const Member& m, int64_t g, Interval readable,
                 int64_t first, typename Arithmetic::Unit* room, typename Arithmetic::Unit* values) {
  using Element = typename Arithmetic::Element;
  const int64_t columns = layout.value_columns;
  const auto load = [&](int64_t key, Element* row) {
    std::memset(row + s.value_dim, 0, sizeof(Element) * static_cast<size_t>(columns - s.value_dim));
    if (key + kAhead < readable.end)
      prefetch_row(call.value, s.kv_dtype, value_at(call, s, m, g, key + kAhead), s.value_dim);
    if (key >= readable.begin && key < readable.end)
      load_row(call.value, s.kv_dtype, value_at(call, s, m, g, key), s.value_dim, row);
    else
      std::memset(row, 0, sizeof(Element) * static_cast<size_t>(s.value_dim));
  };
  for (int64_t j = 0; j < kKeyBlock; j += Arithmetic::kPerUnit) {
    if constexpr (Arithmetic::kPerUnit == 1) {
      load(first + j, values + j * columns);
    } else {
      auto* low = reinterpret_cast<Element*>(room);
      auto* high = low + columns;
      load(first + j, low);
      load(first + j + 1, high);
      auto* HWY_RESTRICT to = values + j / 2 * columns;
      for (int64_t c = 0; c < columns; ++c) to[c] = low[c] | static_cast<uint32_t>(high[c]) << 16;
    }
  }
}

/// Packs keys first .. first + kKeyBlock - 1 of kv head g. `room` has row_room units.
template <class Arithmetic>
void pack_block(const Call& call, const Shape& s, const Layout& layout, const Member& m, int64_t g, int64_t first,
                typename Arithmetic::Unit* room, typename Arithmetic::Unit* block) {
  const Interval readable = visible_keys(s, m, 0, m.rows - 1);
  pack_keys<Arithmetic>(call, s, layout, m, g, readable, first, room, block);
  pack_values<Arithmetic>(call, s, layout, m, g, readable, first, room, block + layout.values_offset);
}

}  // namespace ks::attention_cpu
