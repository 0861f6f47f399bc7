// A candidate's shared object: loaded, checked against the ABI, its functions by name.
#pragma once

#include <string>

#include "kernelseek.h"
#include "worker/worker_device.h"

namespace ks::worker {

/// The functions that a candidate exports; SHAPE and CALL are the operator's, opaque here.
struct NativeLibrary {
  ks_status (*sizes)(const void* shape, ks_buffer_sizes* sizes) = nullptr;
  ks_status (*plan)(const void* shape, void* plan) = nullptr;
  CallFunction run = nullptr;
  CallFunction plan_lengths = nullptr;  ///< optional
  uint32_t abi_version = 0;
  std::string source_hash;
};

/// Loads and checks. Throws ks::Error naming the symbol that is missing or the version that is wrong.
NativeLibrary load_library(const std::string& path);

}  // namespace ks::worker
