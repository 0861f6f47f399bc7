// kernelseek agent-tool NAME (internal): the file tools of the built-in agent, run behind its walls: arguments as JSON
// on standard input, the result on standard output.
#include <cstdio>
#include <iterator>
#include <string>

#include "agents/agent_tools.h"
#include "cli/commands.h"

namespace ks::cli {
namespace {

std::string standard_input() {
  std::string text;
  char buffer[65536];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) text.append(buffer, got);
  return text;
}

}  // namespace

void add_agent_tool_command(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto* command = app.add_subcommand("agent-tool", "A file tool of the built-in agent (internal)");
  command->group("");
  command->add_option("name", *name, "read, write or edit")->required();
  command->callback([name] {
    const auto outcome = agents::file_tool(*name, base::parse_json(standard_input(), "the call's arguments"));
    std::fwrite(outcome.text.data(), 1, outcome.text.size(), stdout);
    exit_code() = outcome.is_error ? kNotMet : kDone;
  });
}

}  // namespace ks::cli
