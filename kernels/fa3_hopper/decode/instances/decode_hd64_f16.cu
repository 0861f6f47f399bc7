#include "kernels/fa3_hopper/decode/decode_instance.cuh"

namespace ks::fa3 {
template cudaError_t launch_decode<0, Element::kF16, false>(const DecodeParams&, int, cudaStream_t);
template cudaError_t launch_decode<1, Element::kF16, false>(const DecodeParams&, int, cudaStream_t);
template cudaError_t launch_decode<2, Element::kF16, false>(const DecodeParams&, int, cudaStream_t);
}  // namespace ks::fa3
