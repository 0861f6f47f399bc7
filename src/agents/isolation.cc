#include "agents/isolation.h"

namespace ks::agents {
namespace {

const char* const kProgram = "bwrap";

std::string try_bubblewrap() {
  base::SpawnOptions options;
  options.argv = {kProgram,        "--ro-bind",         "/",   "/", "--dev", "/dev", "--proc", "/proc",
                  "--unshare-pid", "--die-with-parent", "true"};
  options.timeout_s = 10;
  try {
    const auto result = base::run_process(options);
    if (result.ok()) return "";
    return "bubblewrap does not work here: " + result.err.substr(0, result.err.find('\n'));
  } catch (const Error&) {
    return "bubblewrap is not installed (package bubblewrap)";
  }
}

}  // namespace

const std::string& why_no_isolation() {
  static const std::string why = try_bubblewrap();
  return why;
}

Isolated isolate(const base::SpawnOptions& options, const IsolationSpec& spec) {
  Isolated result{options, false, why_no_isolation()};
  if (!result.why_not.empty()) return result;
  std::vector<std::string> argv = {kProgram, "--ro-bind", "/", "/", spec.device_files ? "--dev-bind" : "--dev", "/dev"};
  if (spec.device_files) argv.push_back("/dev");
  const auto add = [&](std::initializer_list<std::string> words) { argv.insert(argv.end(), words); };
  add({"--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm"});
  // A project that lies in /tmp is still there.
  for (const auto& path : {base::project_root(), base::executable_folder().parent_path()})
    if (path.string().rfind("/tmp/", 0) == 0) add({"--ro-bind", path.string(), path.string()});
  add({"--tmpfs", spec.run_folder.string()});
  add({"--bind", spec.work.string(), spec.work.string()});
  for (const auto& path : spec.readable) add({"--ro-bind", path.string(), path.string()});
  for (const auto& path : spec.writable) add({"--bind-try", path.string(), path.string()});
  for (const auto& [from, to] : spec.bound) add({"--bind-try", from.string(), to.string()});
  add({"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"});
  if (!spec.network) argv.push_back("--unshare-net");
  if (!options.folder.empty()) add({"--chdir", options.folder});
  argv.push_back("--");
  argv.insert(argv.end(), options.argv.begin(), options.argv.end());
  result.options.argv = std::move(argv);
  result.options.folder.clear();
  result.is_isolated = true;
  return result;
}

}  // namespace ks::agents
