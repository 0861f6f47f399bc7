// A Model Context Protocol server on two descriptors: JSON-RPC 2.0, one message a line. It speaks the versions with a
// handshake (2024-11-05 to 2025-11-25) and the one without (2026-07-28) from one loop. Calls of tools run in threads of
// their own, so that pings are answered, progress is told and a call can be cancelled while it works.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"

namespace ks::mcp {

/// What a tool may do while it works.
struct CallContext {
  const std::atomic<bool>* is_cancelled = nullptr;
  std::function<void(double seconds, const std::string& message)> progress;  ///< cheap where nobody asked for it
};

/// What a tool's call came to; a failure of the tool is a result too.
struct CallResult {
  std::string text;
  bool is_error = false;
  Json structured;  ///< null: none
};

/// A tool with its schema. `run` may throw ks::Error; that is a failure of the tool.
struct Tool {
  std::string name, title, description;
  Json input_schema;
  std::function<CallResult(const Json& arguments, const CallContext& context)> run;
};

/// Serves until the input ends, then cancels what is at work. Nothing but messages is written to `out_fd`.
void serve(const std::vector<Tool>& tools, int in_fd, int out_fd);

}  // namespace ks::mcp
