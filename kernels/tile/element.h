// The 16-bit element types that tiles hold; plain, for host and device.
#pragma once

namespace ks::tile {

enum class Element { kBf16, kF16 };

}  // namespace ks::tile
