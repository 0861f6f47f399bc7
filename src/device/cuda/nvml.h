// Clocks, power and throttle reasons of a GPU through NVML, loaded at run time (it comes with the driver).
#pragma once

#include "base/json.h"

namespace ks::device {

/// {"sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "throttle_reasons", "driver"}, or {"error": why}.
Json device_state(int ordinal);

}  // namespace ks::device
