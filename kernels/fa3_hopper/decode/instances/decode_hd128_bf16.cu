#include "kernels/fa3_hopper/decode/decode_instance.cuh"

namespace ks::fa3 {
template cudaError_t launch_decode<6, Element::kBf16, false>(const DecodeParams&, int, cudaStream_t);
template cudaError_t launch_decode<7, Element::kBf16, false>(const DecodeParams&, int, cudaStream_t);
template cudaError_t launch_decode<8, Element::kBf16, false>(const DecodeParams&, int, cudaStream_t);
}  // namespace ks::fa3
