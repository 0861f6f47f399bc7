#include "kernels/fa3_hopper/forward_instance.cuh"
template cudaError_t ks::fa3::launch_forward<ks::fa3::ForwardShape::kHd96, ks::fa3::Element::kBf16, false>(
    const ForwardParams&, int, cudaStream_t);
template cudaError_t ks::fa3::launch_forward<ks::fa3::ForwardShape::kHd96, ks::fa3::Element::kBf16, true>(
    const ForwardParams&, int, cudaStream_t);
