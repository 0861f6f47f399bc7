// `kernelseek serve`: the report page of a run, live.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {
void add_serve_command(CLI::App& app);
}
