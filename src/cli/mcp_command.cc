// kernelseek mcp: the tools of this program for any agent that speaks the Model Context Protocol, on standard input and
// output.
#include <unistd.h>

#include "agents/command_agent.h"
#include "base/file.h"
#include "cli/commands.h"
#include "mcp/server.h"
#include "mcp/tools.h"

namespace ks::cli {

void add_mcp_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("mcp", "Serves evaluate, profile, disassemble, history and ask to agents (MCP, stdio)");
  command->footer(
      "Example, in an agent program's settings: command \"kernelseek\", arguments [\"mcp\"]\n"
      "Within a run ($KERNELSEEK_RUN_SOCKET) evaluate, history and ask go through that run.");
  command->callback([] {
    const auto program = base::executable_folder() / "kernelseek";
    mcp::serve(mcp::all_tools(program.string(), agents::run_socket()), STDIN_FILENO, STDOUT_FILENO);
  });
}

}  // namespace ks::cli
