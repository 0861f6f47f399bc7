#include "kernels/fa3_hopper/decode/decode_instance.cuh"

namespace ks::fa3 {
template cudaError_t launch_decode<9, Element::kF16, true>(const DecodeParams&, int, cudaStream_t);
template cudaError_t launch_decode<10, Element::kF16, true>(const DecodeParams&, int, cudaStream_t);
}  // namespace ks::fa3
