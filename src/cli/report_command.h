// `kernelseek report`: a run, an evaluation record or a transcript as one HTML page.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {
void add_report_command(CLI::App& app);
}
