// The tools of the built-in agent. All of them run behind the walls of isolation.h, without the network and without a
// single variable of our environment, so that neither the model's key nor anything of the run is within their reach:
// also reading and editing, which a link in the work folder could otherwise lead out of it.
#pragma once

#include <string>
#include <vector>

#include "agents/isolation.h"
#include "agents/model_wire.h"

namespace ks::agents {

/// What a call came to.
struct ToolOutcome {
  std::string text;
  bool is_error = false;
};

struct ToolSetup {
  IsolationSpec isolation;
  std::string kernelseek;           ///< path of this program
  std::string candidate;            ///< relative to the work folder
  std::string operator_name, grid;  ///< of the task
  base::fs::path cache;             ///< writable inside, for builds
  base::fs::path home;              ///< HOME inside
  double longest_s = 3600;          ///< no call may take longer
};

/// What is offered; helpers get no helpers.
std::vector<ToolOffer> tool_offers(bool is_helper);

/// Runs one of: shell, read, write, edit, profile, disassemble.
ToolOutcome run_tool(const ToolSetup& setup, const std::string& name, const Json& arguments);

/// The inside of read, write and edit, run by `kernelseek agent-tool NAME` in the work folder.
ToolOutcome file_tool(const std::string& name, const Json& arguments);

/// The middle of a text that is too long for a model is left out, and it says so.
std::string shortened(const std::string& text, size_t most);

}  // namespace ks::agents
