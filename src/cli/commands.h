// Every command of the program: each adds itself to the command line and returns its exit code through `exit_code`.
#pragma once

#include <CLI/CLI.hpp>

namespace ks::cli {

/// Exit codes of `evaluate` and of every command: 0 done (goal met or none given), 1 goal not met, 2 something is wrong
/// with the candidate, 3 could not be done.
enum ExitCode { kDone = 0, kNotMet = 1, kWrong = 2, kCouldNot = 3 };

/// The exit code that the chosen command leaves behind.
int& exit_code();

void add_evaluate_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_scenarios_command(CLI::App& app);
void add_baseline_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_disassemble_command(CLI::App& app);
void add_profile_command(CLI::App& app);
void add_trace_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_ask_command(CLI::App& app);
void add_signals_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_init_command(CLI::App& app);
void add_hook_command(CLI::App& app);
void add_experiment_command(CLI::App& app);
void add_serve_command(CLI::App& app);
void add_bank_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_agent_tool_command(CLI::App& app);
void add_mcp_command(CLI::App& app);

}  // namespace ks::cli
