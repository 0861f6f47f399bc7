#include "device/cuda/nvml.h"

#include <dlfcn.h>

namespace ks::device {
namespace {

using Handle = struct OpaqueNvmlDevice*;
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;  // nvmlClockType_t, nvmlTemperatureSensors_t

/// The functions we need of libnvidia-ml.
struct Nvml {
  int (*init)() = nullptr;
  int (*handle)(unsigned int, Handle*) = nullptr;
  int (*clock)(Handle, int, unsigned int*) = nullptr;
  int (*power)(Handle, unsigned int*) = nullptr;
  int (*temperature)(Handle, int, unsigned int*) = nullptr;
  int (*reasons)(Handle, unsigned long long*) = nullptr;
  int (*driver)(char*, unsigned int) = nullptr;
  bool ok = false;
};

Nvml load_nvml() {
  Nvml nvml;
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) return nvml;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
  };
  find(nvml.init, "nvmlInit_v2");
  find(nvml.handle, "nvmlDeviceGetHandleByIndex_v2");
  find(nvml.clock, "nvmlDeviceGetClockInfo");
  find(nvml.power, "nvmlDeviceGetPowerUsage");
  find(nvml.temperature, "nvmlDeviceGetTemperature");
  find(nvml.reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(nvml.driver, "nvmlSystemGetDriverVersion");
  nvml.ok = nvml.init != nullptr && nvml.handle != nullptr && nvml.clock != nullptr && nvml.init() == 0;
  return nvml;
}

}  // namespace

Json device_state(int ordinal) {
  static const Nvml nvml = load_nvml();
  Handle device = nullptr;
  if (!nvml.ok || nvml.handle(static_cast<unsigned int>(ordinal), &device) != 0)
    return Json{{"error", "NVML is not to be had"}};
  Json state;
  unsigned int value = 0;
  unsigned long long reasons = 0;
  if (nvml.clock(device, kClockSm, &value) == 0) state["sm_clock_mhz"] = value;
  if (nvml.clock(device, kClockMemory, &value) == 0) state["memory_clock_mhz"] = value;
  if (nvml.power != nullptr && nvml.power(device, &value) == 0) state["power_w"] = value / 1000.0;
  if (nvml.temperature != nullptr && nvml.temperature(device, kTemperatureGpu, &value) == 0)
    state["temperature_c"] = value;
  if (nvml.reasons != nullptr && nvml.reasons(device, &reasons) == 0) state["throttle_reasons"] = reasons;
  char text[96] = "";
  if (nvml.driver != nullptr && nvml.driver(text, sizeof text) == 0) state["driver"] = std::string(text);
  return state;
}

}  // namespace ks::device
