// Launches one compiled shape of the decode kernel. Declared here for the family; defined, with the kernel, in
// decode_instance.cuh, which only the files in instances/ include, so that each compiles by itself.
#pragma once

#include <cuda_runtime.h>

#include "kernels/fa3_hopper/decode/decode_configs.h"
#include "kernels/fa3_hopper/decode/decode_params.h"

namespace ks::fa3 {

/// Starts the kernel on the stream with `blocks` blocks; with 0, only allows it its shared memory on the current
/// device.
template <int kShape, Element kType, bool kE4m3>
cudaError_t launch_decode(const DecodeParams& params, int blocks, cudaStream_t stream);

}  // namespace ks::fa3
