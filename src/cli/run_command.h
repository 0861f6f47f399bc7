// kernelseek run, and the internal "agent" that serves the embedded agent in a process of its own.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {
void add_run_command(CLI::App& app);
}
