#include "evaluator/baselines.h"

#include <algorithm>

#include "base/toml.h"
#include "evaluator/build.h"
#include "evaluator/candidate.h"

namespace ks::evaluator {
namespace {

std::vector<std::string> strings_at(const base::TomlFile& file, const char* key) {
  std::vector<std::string> result;
  const auto found = file.values.find(key);
  if (found == file.values.end()) return result;
  if (!found->is_array()) throw Error("{}: \"{}\" must be a list of strings", file.where(key), key);
  for (const auto& entry : *found) {
    if (!entry.is_string()) throw Error("{}: \"{}\" must be a list of strings", file.where(key), key);
    result.push_back(entry.get<std::string>());
  }
  return result;
}

Baseline read_baseline(const base::fs::path& folder) {
  const auto file = base::read_toml_file((folder / "baseline.toml").string());
  Baseline baseline;
  baseline.folder = folder;
  baseline.name = base::require<std::string>(file.values, "name", file.path);
  baseline.device = base::require<std::string>(file.values, "device", file.path);
  baseline.kind = base::require<std::string>(file.values, "kind", file.path);
  baseline.summary = base::require<std::string>(file.values, "summary", file.path);
  baseline.from = base::value_or<std::string>(file.values, "from", "");
  baseline.by_default = base::value_or(file.values, "by_default", true);
  baseline.operators = strings_at(file, "operators");
  baseline.command = strings_at(file, "command");
  baseline.packages = strings_at(file, "packages");
  baseline.needs = strings_at(file, "needs");
  baseline.apt = strings_at(file, "apt");
  if (baseline.kind != "native" && baseline.kind != "worker")
    throw Error("{}: kind \"{}\" must be \"native\" or \"worker\"", file.where("kind"), baseline.kind);
  if (baseline.operators.empty()) throw Error("{}: \"operators\" names none", file.path);
  if (baseline.kind == "worker" && baseline.command.empty())
    throw Error("{}: a worker needs a \"command\"", file.where("kind"));
  return baseline;
}

/// "{python}", "{site}" and "{folder}" replaced.
std::string expand(std::string text, const Baseline& baseline) {
  const std::pair<std::string, std::string> replacements[] = {
      {"{python}", (environment_folder() / "bin/python3").string()},
      {"{site}", environment_site_packages().string()},
      {"{folder}", baseline.folder.string()},
      {"{fa3}", std::getenv("KERNELSEEK_FA3") != nullptr ? std::getenv("KERNELSEEK_FA3")
                                                         : (environment_folder() / "lib/fa3").string()}};
  for (const auto& [from, to] : replacements)
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::vector<Baseline> known_baselines(const std::string& device) {
  std::vector<Baseline> result;
  const auto folder = base::project_root() / "baselines";
  if (!base::fs::exists(folder)) return result;
  for (const auto& entry : base::fs::directory_iterator(folder))
    if (base::fs::exists(entry.path() / "baseline.toml")) result.push_back(read_baseline(entry.path()));
  std::erase_if(result, [&](const Baseline& baseline) { return !device.empty() && baseline.device != device; });
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return result;
}

Baseline find_baseline(const std::string& name, const std::string& device) {
  std::vector<std::string> names;
  for (const auto& baseline : known_baselines(device)) {
    if (baseline.name == name) return baseline;
    names.push_back(baseline.name);
  }
  const auto near = base::nearest_word(name, names);
  throw Error("unknown baseline \"{}\" for device {}{}; known: {}", name, device.empty() ? "any" : device,
              near.empty() ? "" : " (did you mean " + near + "?)", fmt::join(names, ", "));
}

base::fs::path environment_folder() {
  if (const char* given = std::getenv("KERNELSEEK_VENV")) return given;
  return base::project_root() / ".venv";
}

base::fs::path environment_site_packages() {
  const auto lib = environment_folder() / "lib";
  if (base::fs::exists(lib))
    for (const auto& entry : base::fs::directory_iterator(lib))
      if (entry.path().filename().string().starts_with("python3")) return entry.path() / "site-packages";
  return lib / "python3/site-packages";
}

std::string missing_parts(const Baseline& baseline) {
  for (const auto& need : baseline.needs) {
    const base::fs::path path = expand(need, baseline);
    const auto full = path.is_absolute() ? path : environment_site_packages() / path;
    if (!base::fs::exists(full)) return full.string() + " is not there";
  }
  return "";
}

Implementation open_baseline(const Baseline& baseline, int threads) {
  Implementation result;
  result.name = baseline.name;
  if (baseline.kind == "worker") {
    for (const auto& word : baseline.command) result.command.push_back(expand(word, baseline));
    result.folder = baseline.folder.string();
    return result;
  }
  Candidate candidate = load_candidate(baseline.folder.string(), "");
  for (auto* list : {&candidate.flags, &candidate.libs, &candidate.includes})
    for (auto& word : *list) word = expand(word, baseline);
  const Build build = build_candidate(candidate, baseline.device, threads);
  if (!build.ok) throw Error("baseline {} does not compile:\n{}", baseline.name, build.log);
  result.shared_object = build.shared_object;
  return result;
}

}  // namespace ks::evaluator
