// The CUDA kind of device. Present in builds with a CUDA compiler (KS_WITH_CUDA); the trusted side of the protocol.
#pragma once

#include <memory>

#include "device/device.h"

namespace ks::device {

/// Throws ks::Error where there is no such GPU or the driver is too old.
std::unique_ptr<Device> make_cuda_device(int ordinal);

}  // namespace ks::device
