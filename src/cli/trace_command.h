// kernelseek trace import, stats, show, query, export: transcripts of any agent, read.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {
void add_trace_command(CLI::App& app);
}
