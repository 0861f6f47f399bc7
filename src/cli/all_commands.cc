#include "cli/all_commands.h"

namespace ks::cli {

int& exit_code() {
  static int code = kDone;
  return code;
}

void add_all_commands(CLI::App& app) {
  add_init_command(app);
  add_doctor_command(app);
  add_scenarios_command(app);
  add_evaluate_command(app);
  add_verify_command(app);
  add_baseline_command(app);
  add_profile_command(app);
  add_disassemble_command(app);
  add_run_command(app);
  add_agent_tool_command(app);
  add_mcp_command(app);
  add_ask_command(app);
  add_signals_command(app);
  add_report_command(app);
  add_serve_command(app);
  add_bank_command(app);
  add_hook_command(app);
  add_experiment_command(app);
  add_trace_command(app);
  add_data_command(app);
}

}  // namespace ks::cli
