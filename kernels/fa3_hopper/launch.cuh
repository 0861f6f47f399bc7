// Launches one compiled configuration of the forward kernel. Declared here for the entry; defined, with the kernel, in
// forward_instance.cuh, which only the files in instances/ include, so that each compiles by itself.
#pragma once

#include <cuda_runtime.h>

#include "kernels/fa3_hopper/configs.h"
#include "kernels/fa3_hopper/forward_params.h"

namespace ks::fa3 {

/// Starts the kernel on the stream with `blocks` blocks; with 0, only allows it its shared memory on the current
/// device.
template <ForwardShape kShape, Element kType, bool kSoftcap>
cudaError_t launch_forward(const ForwardParams& params, int blocks, cudaStream_t stream);

}  // namespace ks::fa3
