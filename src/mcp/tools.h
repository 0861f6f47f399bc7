// What `kernelseek mcp` offers: evaluate, profile, disassemble, history, ask. Within a run ($KERNELSEEK_RUN_SOCKET)
// evaluate, history and ask go through that run, whose figures count and whose questioner speaks; elsewhere they are
// this program's own commands, run as children that end with their call.
#pragma once

#include "mcp/server.h"

namespace ks::mcp {

/// `program`: the path of kernelseek; `run_socket`: of the run that we are inside of, "" none.
std::vector<Tool> all_tools(const std::string& program, const std::string& run_socket);

}  // namespace ks::mcp
