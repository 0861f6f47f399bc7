// kernelseek init DIR --operator NAME: a folder to start from.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {
void add_init_command(CLI::App& app);
}
