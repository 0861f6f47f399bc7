// kernelseek ask RUN: the questions that the evidence calls for now.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {
void add_ask_command(CLI::App& app);
}
