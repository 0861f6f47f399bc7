// Sealing for programs that are not ours: a Python worker loads libks_seal.so and calls ks_seal_process once everything
// that it needs is loaded; kernelseek-confine starts such a program confined from its first instruction.
#pragma once

#include <cstddef>

#include "sandbox/sandbox.h"

namespace ks::sandbox {

/// Environment variable by which kernelseek-confine says what it has done (JSON), so that it is not done twice.
inline constexpr const char* kConfinedVariable = "KERNELSEEK_CONFINED";
/// Folders that may be read besides, separated by ':'.
inline constexpr const char* kReadPathsVariable = "KERNELSEEK_READ_PATHS";

/// What an interpreter reads while it works: its installation, the packages that it has loaded, its working folder and
/// what the environment names. `device_files` is set where the CUDA driver is loaded.
Confinement interpreter_confinement();

}  // namespace ks::sandbox

/// Confines and seals the calling process; writes what was done as JSON to `answer`. Returns 0, or 1 if `answer` is too
/// small for it.
extern "C" __attribute__((visibility("default"))) int ks_seal_process(char* answer, size_t bytes);
