// The list of commands, in the order of the help text.
#pragma once

#include "cli/commands.h"

namespace ks::cli {
void add_all_commands(CLI::App& app);
}
