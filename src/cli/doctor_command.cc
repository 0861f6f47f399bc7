// kernelseek doctor: what this machine can do, what is missing, and the command that would change it.
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "agents/description.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "base/table.h"
#include "cli/commands.h"
#include "evaluator/baselines.h"
#include "evaluator/operators.h"

namespace ks::cli {
namespace {

struct Finding {
  std::string what, state, mend;
  bool ok = false;
};

/// The first line that a command prints, or "" if it cannot be run.
std::string first_line(const std::vector<std::string>& argv) {
  try {
    const auto result = base::run_process({.argv = argv, .timeout_s = 20});
    if (!result.ok()) return "";
    const std::string text = result.out.empty() ? result.err : result.out;
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return "";
  }
}

Finding program(const std::string& what, const std::vector<std::string>& argv, const std::string& mend) {
  const std::string line = first_line(argv);
  return {what, line.empty() ? "not found" : line, mend, !line.empty()};
}

Finding works(const std::string& what, const std::vector<std::string>& argv, const std::string& mend) {
  try {
    const auto result = base::run_process({.argv = argv, .timeout_s = 20});
    return {what, result.ok() ? "works" : "does not work here: " + result.err.substr(0, result.err.find('\n')), mend,
            result.ok()};
  } catch (const Error&) {
    return {what, "not found", mend, false};
  }
}

/// Where an agent program lies: in PATH, or where `make clients` puts it; "" nowhere.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string folders = (path == nullptr ? "" : std::string(path)) + ":";
  folders += (base::cache_folder() / "clients" / "bin").string() + ":";
  for (size_t at = 0, end = 0; (end = folders.find(':', at)) != std::string::npos; at = end + 1) {
    const auto file = base::fs::path(folders.substr(at, end - at)) / name;
    if (end > at && ::access(file.c_str(), X_OK) == 0) return file.string();
  }
  return "";
}

/// An agent program that data/agents describes, and how the description was tested.
Finding agent_program(const agents::Description& description) {
  const bool is_live = description.tested == "live";
  const std::string how = is_live ? "driven live by the tests" : "known from recordings only";
  const std::string mend = is_live ? "make clients" : "install " + description.program + " as its vendor says";
  const std::string file = find_program(description.program);
  if (file.empty()) return {"agent " + description.name, "not found; " + how, mend, false};
  std::vector<std::string> argv = {file};
  argv.insert(argv.end(), description.version.begin(), description.version.end());
  const std::string version = description.version.empty() ? "found" : first_line(argv);
  return {"agent " + description.name, (version.empty() ? "found" : version) + "; " + how, mend, true};
}

std::vector<Finding> examine() {
  std::vector<Finding> findings = {
      program("C++ compiler", {"g++", "--version"}, "apt-get install g++"),
      program("CUDA compiler", {"nvcc", "--version"},
              "pip install nvidia-cuda-nvcc, or the CUDA toolkit 12.8 or newer"),
      program("GPU", {"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"},
              "an NVIDIA GPU and its driver"),
      program("GPU profiler", {"ncu", "--version"}, "Nsight Compute, part of the CUDA toolkit"),
      program("sanitizer", {"compute-sanitizer", "--version"}, "compute-sanitizer, part of the CUDA toolkit"),
      works("network namespaces", {"unshare", "-rn", "true"}, "root, or unprivileged user namespaces"),
      works("bubblewrap", {"bwrap", "--ro-bind", "/", "/", "true"},
            "apt-get install bubblewrap, and unprivileged user namespaces"),
      program("browser for report tests", {"chromium", "--version"}, "apt-get install chromium (Debian)"),
      program("git", {"git", "--version"}, "apt-get install git")};
  for (const auto& [name, description] : agents::all_descriptions())
    if (!description.program.empty()) findings.push_back(agent_program(description));
  for (const auto& baseline : evaluator::known_baselines("")) {
    const auto missing = evaluator::missing_parts(baseline);
    findings.push_back({"baseline " + baseline.name + " (" + baseline.device + ")",
                        missing.empty() ? "installed" : missing, "kernelseek baseline install " + baseline.name,
                        missing.empty()});
  }
  return findings;
}

void doctor_command(bool json) {
  Json rows = Json::array();
  base::TextTable table({"what", "state", "to change that"});
  for (const auto& finding : examine()) {
    rows.push_back({{"what", finding.what},
                    {"ok", finding.ok},
                    {"state", finding.state},
                    {"mend", finding.ok ? "" : finding.mend}});
    table.add({finding.what, finding.state, finding.ok ? "" : finding.mend});
  }
  if (json) {
    fmt::print("{}\n", Json{{"cores", std::thread::hardware_concurrency()},
                            {"operators", evaluator::known_operators()},
                            {"findings", rows}}
                           .dump(1));
    return;
  }
  fmt::print("{} cores; operators: {}\n{}", std::thread::hardware_concurrency(),
             fmt::join(evaluator::known_operators(), ", "), table.text(base::terminal_width()));
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  auto* command = app.add_subcommand("doctor", "What this machine can do, and how to get what is missing");
  command->footer("Example: kernelseek doctor --json");
  command->add_flag("--json", *json, "For programs");
  command->callback([json] { doctor_command(*json); });
}

}  // namespace ks::cli
