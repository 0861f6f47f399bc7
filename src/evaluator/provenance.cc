#include "evaluator/provenance.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "base/subprocess.h"

namespace ks::evaluator {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string git_revision() {
  const std::string root = base::project_root().string();
  const auto head =
      base::run_process({.argv = {"git", "-C", root, "rev-parse", "--short=12", "HEAD"}, .timeout_s = 10});
  if (!head.ok()) return "unknown";
  const auto dirty = base::run_process({.argv = {"git", "-C", root, "status", "--porcelain", "-uno"}, .timeout_s = 10});
  return head.out.substr(0, head.out.find('\n')) + (dirty.ok() && !dirty.out.empty() ? "+changes" : "");
}

}  // namespace

Json describe_host(const std::string& device, int threads) {
  utsname system{};
  ::uname(&system);
  double load = 0;
  ::getloadavg(&load, 1);
  std::string revision = "unknown";
  try {
    revision = git_revision();
  } catch (const Error&) {
    // No git here: the record says so.
  }
  return Json{{"device_kind", device}, {"processor", processor_name()},
              {"threads", threads},    {"system", std::string(system.sysname) + " " + system.release},
              {"load_at_start", load}, {"evaluator_compiler", "g++ " __VERSION__},
              {"revision", revision}};
}

}  // namespace ks::evaluator
