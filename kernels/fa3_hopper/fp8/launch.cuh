// Launches one compiled shape of the e4m3 kernel. Declared here for the family; defined, with the kernel, in
// fp8_instance.cuh, which only the files in instances/ include, so that each compiles by itself.
#pragma once

#include <cuda_runtime.h>

#include "kernels/fa3_hopper/fp8/configs.h"
#include "kernels/fa3_hopper/fp8/params.h"

namespace ks::fa3::fp8 {

/// Starts the kernel on the stream with `blocks` blocks; with 0, only allows it its shared memory on the current
/// device.
template <Fp8Shape kShape>
cudaError_t launch_fp8(const Fp8Params& params, int blocks, cudaStream_t stream);

}  // namespace ks::fa3::fp8
