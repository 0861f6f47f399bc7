// kernelseek signals RUN: the values behind the questions.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {
void add_signals_command(CLI::App& app);
}
