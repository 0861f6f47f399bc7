#include "evaluator/baselines.h"

#include <algorithm>

#include "base/toml.h"
#include "evaluator/baseline_store.h"
#include "evaluator/build.h"
#include "evaluator/candidate.h"

namespace ks::evaluator {
namespace {

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
  baseline.operators = base::strings_at(file, "operators");
  baseline.command = base::strings_at(file, "command");
  baseline.packages = base::strings_at(file, "packages");
  baseline.needs = base::strings_at(file, "needs");
  baseline.apt = base::strings_at(file, "apt");
  baseline.extract = base::strings_at(file, "extract");
  baseline.trees = base::strings_at(file, "trees");
  baseline.members = base::strings_at(file, "members");
  baseline.unwritten = base::strings_at(file, "unwritten");
  if (baseline.kind != "native" && baseline.kind != "worker" && baseline.kind != "group")
    throw Error("{}: kind \"{}\" must be \"native\", \"worker\" or \"group\"", file.where("kind"), baseline.kind);
  if ((baseline.kind == "group") == baseline.members.empty())
    throw Error("{}: \"members\" go with kind \"group\", and a group needs them", file.where("kind"));
  if (baseline.extract.empty() != baseline.trees.empty())
    throw Error("{}: \"extract\" and \"trees\" go together", file.path);
  if (baseline.operators.empty()) throw Error("{}: \"operators\" names none", file.path);
  if (baseline.kind == "worker" && baseline.command.empty())
    throw Error("{}: a worker needs a \"command\"", file.where("kind"));
  return baseline;
}

/// "{python}", "{site}", "{folder}" and "{rival}" replaced.
std::string expand(std::string text, const Baseline& baseline) {
  const std::pair<std::string, std::string> replacements[] = {
      {"{python}", (environment_folder() / "bin/python3").string()},
      {"{site}", environment_site_packages().string()},
      {"{folder}", baseline.folder.string()},
      {"{rival}", rival_folder(baseline.name).string()}};
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
  for (const auto& member : baseline.members)
    if (const auto missing = missing_parts(find_baseline(member, baseline.device)); !missing.empty()) return missing;
  for (const auto& need : baseline.needs) {
    const auto path = base::fs::path(expand(need, baseline)).lexically_normal();
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
  result.unwritten = baseline.unwritten;
  return result;
}

}  // namespace ks::evaluator
