#include "cli/hook_command.h"

#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"
#include "hook/stop_hook.h"

namespace ks::cli {

void add_hook_command(CLI::App& app) {
  auto run = std::make_shared<std::string>();
  auto* command = app.add_subcommand("hook", "Hooks for agent programs");
  command->require_subcommand(1);
  auto* stop = command->add_subcommand("stop", "May the agent stop? Answers from known facts in the program's dialect");
  stop->footer(
      "Example, as a Stop hook of an agent program: kernelseek hook stop --run runs/attention_demo-1 < input.json\n"
      "A run sets KERNELSEEK_RUN for its agent, so that --run is not needed there.");
  stop->add_option("--run", *run, "Run folder; default: $KERNELSEEK_RUN");
  stop->callback([run] {
    const char* from_environment = std::getenv("KERNELSEEK_RUN");
    if (run->empty() && from_environment != nullptr) *run = from_environment;
    constexpr double kPatience_s = 1.0;
    const hook::Reply reply = hook::stop_hook(run->empty() ? "." : *run, kPatience_s);
    std::fputs(reply.out.c_str(), stdout);
    std::fputs(reply.err.c_str(), stderr);
    exit_code() = reply.exit_code;
  });
}

}  // namespace ks::cli
