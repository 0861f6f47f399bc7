// kernelseek hook stop: the stop judge for agent programs that have a stop hook.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {
void add_hook_command(CLI::App& app);
}
