// kernelseek agent-tool NAME (internal): the file tools of the built-in agent, run behind its walls: arguments as JSON
// on standard input, the result on standard output. And what `data check` looks at of its models.
#include <cstdio>
#include <iterator>
#include <string>

#include "agents/agent_tools.h"
#include "agents/model_spec.h"
#include "cli/commands.h"
#include "cli/data_checks.h"

namespace ks::cli {
namespace {

std::string standard_input() {
  std::string text;
  char buffer[65536];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) text.append(buffer, got);
  return text;
}

void check_models(DataReport& report) {
  for (const auto& entry : base::fs::directory_iterator(base::project_root() / "data" / "models"))
    if (entry.path().extension() == ".toml")
      report.check(entry.path().string(), [&] { (void)agents::read_model(entry.path(), "any"); });
}

}  // namespace

void add_agent_tool_command(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto* command = app.add_subcommand("agent-tool", "A file tool of the built-in agent (internal)");
  command->group("");
  more_data_checks().push_back(check_models);
  command->add_option("name", *name, "read, write or edit")->required();
  command->callback([name] {
    const auto outcome = agents::file_tool(*name, base::parse_json(standard_input(), "the call's arguments"));
    std::fwrite(outcome.text.data(), 1, outcome.text.size(), stdout);
    exit_code() = outcome.is_error ? kNotMet : kDone;
  });
}

}  // namespace ks::cli
