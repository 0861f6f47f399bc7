#include "kernels/fa3_hopper/fp8/fp8_instance.cuh"
template cudaError_t ks::fa3::fp8::launch_fp8<ks::fa3::fp8::Fp8Shape::kHd256>(const Fp8Params&, int, cudaStream_t);
