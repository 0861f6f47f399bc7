#include "evaluator/baseline_store.h"

#include <algorithm>

#include "base/hash.h"
#include "base/subprocess.h"

namespace ks::evaluator {
namespace {

namespace fs = base::fs;

constexpr double kPipLimitS = 1800, kArchiveLimitS = 1800;

fs::path rivals_folder() {
  if (const char* given = std::getenv("KERNELSEEK_RIVALS")) return given;
  return environment_folder() / "rivals";
}

void run_or_throw(const std::vector<std::string>& argv, double limit_s, const std::string& what) {
  const auto result = base::run_process({.argv = argv, .timeout_s = limit_s});
  if (!result.ok()) throw Error("{}:\n{}", what, result.err.empty() ? result.out : result.err);
}

/// Makes the project's own Python environment if it is not there.
void make_environment() {
  if (fs::exists(environment_folder() / "bin/python3")) return;
  run_or_throw(
      {"python3", "-m", "venv", environment_folder().string()}, 300,
      fmt::format("cannot make a Python environment in {} (on Debian and Ubuntu: apt-get install python3-venv)",
                  environment_folder().string()));
}

/// "pip install" or "pip download" of the pinned packages; pip checks the hashes itself where there are any.
std::vector<std::string> pip_command(const Baseline& baseline, const std::string& verb, const fs::path& list) {
  std::string text;
  bool hashed = true;
  for (const auto& package : baseline.packages) {
    text += package + "\n";
    hashed &= package.find("--hash=") != std::string::npos;
  }
  base::write_file_atomically(list, text);
  std::vector<std::string> argv = {(environment_folder() / "bin/python3").string(),
                                   "-m",
                                   "pip",
                                   verb,
                                   "--quiet",
                                   "--no-deps",
                                   "--only-binary=:all:",
                                   "--disable-pip-version-check"};
  if (hashed) argv.push_back("--require-hashes");
  argv.insert(argv.end(), {"-r", list.string()});
  return argv;
}

bool is_wanted(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& prefix) { return name.starts_with(prefix); });
}

/// The wanted files of every wheel in `from`, put into `to`.
void extract_wheels(const Baseline& baseline, const fs::path& from, const fs::path& to) {
  base::make_folder(to);
  for (const auto& wheel : fs::directory_iterator(from)) {
    if (wheel.path().extension() != ".whl") continue;
    run_or_throw({(environment_folder() / "bin/python3").string(), "-c",
                  "import sys, zipfile\n"
                  "wheel, to, prefixes = zipfile.ZipFile(sys.argv[1]), sys.argv[2], tuple(sys.argv[3].split(chr(10)))\n"
                  "[wheel.extract(n, to) for n in wheel.namelist() if n.startswith(prefixes) and not n.endswith('/')]",
                  wheel.path().string(), to.string(), fmt::format("{}", fmt::join(baseline.extract, "\n"))},
                 kArchiveLimitS, fmt::format("cannot unpack {}", wheel.path().string()));
  }
  for (const auto& entry : fs::recursive_directory_iterator(to))
    KS_CHECK(!entry.is_regular_file() || is_wanted(entry.path().lexically_relative(to).string(), baseline.extract),
             "only what was wanted is extracted");
}

/// Throws where a folder is not one of those that the baseline's description pins.
void check_tree(const Baseline& baseline, const fs::path& folder) {
  const std::string hash = tree_hash(folder);
  if (std::find(baseline.trees.begin(), baseline.trees.end(), hash) != baseline.trees.end()) return;
  throw Error(
      "baseline {}: the files are not those that {} pins (their hash is {}); get them anew with: kernelseek "
      "baseline install {}",
      baseline.name, (baseline.folder / "baseline.toml").string(), hash, baseline.name);
}

/// Moves a checked folder to where workers look for it.
void put_in_place(const fs::path& folder, const std::string& name) {
  const fs::path place = rival_folder(name), temporary = place.string() + ".new";
  base::make_folder(place.parent_path());
  fs::remove_all(temporary);
  fs::copy(folder, temporary, fs::copy_options::recursive);
  fs::remove_all(place);
  fs::rename(temporary, place);
}

void install_one(const Baseline& baseline, const std::string& python) {
  if (baseline.packages.empty()) return;
  make_environment();
  const base::TempFolder work("kernelseek-install");
  auto argv = pip_command(baseline, baseline.extract.empty() ? "install" : "download", work.path() / "list.txt");
  if (baseline.extract.empty()) {
    run_or_throw(argv, kPipLimitS, fmt::format("pip could not install {}", baseline.name));
    return;
  }
  argv.insert(argv.end(), {"-d", (work.path() / "wheels").string()});
  if (!python.empty()) {
    argv.insert(argv.end(), {"--python-version", python, "--implementation", "cp"});
    for (const char* platform : {"manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17"})
      argv.insert(argv.end(), {"--platform", fmt::format("{}_x86_64", platform)});
  }
  run_or_throw(argv, kPipLimitS, fmt::format("pip could not get {}", baseline.name));
  extract_wheels(baseline, work.path() / "wheels", work.path() / "files");
  check_tree(baseline, work.path() / "files");
  put_in_place(work.path() / "files", baseline.name);
}

/// The names with groups replaced by their members, each once.
std::vector<Baseline> members_of(const std::vector<std::string>& names) {
  std::vector<Baseline> result;
  const auto add = [&](const Baseline& baseline) {
    for (const auto& known : result)
      if (known.name == baseline.name) return;
    result.push_back(baseline);
  };
  for (const auto& name : names) {
    const Baseline baseline = find_baseline(name, "");
    if (baseline.members.empty()) add(baseline);
    for (const auto& member : baseline.members) add(find_baseline(member, ""));
  }
  return result;
}

}  // namespace

fs::path rival_folder(const std::string& name) {
  return rivals_folder() / name;
}

std::string tree_hash(const fs::path& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().lexically_relative(folder).string();
    if (!entry.is_regular_file() || path.find("__pycache__") != std::string::npos) continue;
    lines.push_back(path + " " + base::sha256_hex(base::read_file(entry.path())) + "\n");
  }
  std::sort(lines.begin(), lines.end());
  return base::sha256_hex(fmt::format("{}", fmt::join(lines, "")));
}

void install_baseline(const Baseline& baseline, const std::string& python) {
  for (const auto& one : members_of({baseline.name})) {
    install_one(one, python);
    // Files for another interpreter are there to be packed, not to be loaded here.
    if (const auto missing = python.empty() ? missing_parts(one) : ""; !missing.empty())
      throw Error("baseline {} is not whole: {}{}", one.name, missing,
                  one.apt.empty() ? "" : fmt::format("; install the distribution's {}", fmt::join(one.apt, " ")));
  }
}

uint64_t pack_baselines(const std::vector<std::string>& names, const fs::path& archive) {
  std::vector<std::string> argv = {"tar",
                                   "--create",
                                   "--file",
                                   archive.string(),
                                   "--sort=name",
                                   "--mtime=@0",
                                   "--owner=0",
                                   "--group=0",
                                   "--numeric-owner",
                                   "--exclude=__pycache__",
                                   "--use-compress-program=xz --x86 --lzma2=preset=9,dict=192MiB",
                                   "--directory",
                                   rivals_folder().string()};
  for (const auto& baseline : members_of(names)) {
    if (baseline.extract.empty())
      throw Error("baseline {} has no files of its own to pack: its packages go into a Python environment",
                  baseline.name);
    if (!fs::exists(rival_folder(baseline.name)))
      throw Error("baseline {} is not installed; install it with: kernelseek baseline install {}", baseline.name,
                  baseline.name);
    check_tree(baseline, rival_folder(baseline.name));
    argv.push_back(baseline.name);
  }
  run_or_throw(argv, kArchiveLimitS, fmt::format("cannot write {}", archive.string()));
  const uint64_t bytes = fs::file_size(archive);
  if (bytes <= kPackBytesMax) return bytes;
  fs::remove(archive);
  throw Error("these baselines pack to {:.1f} MiB, at most {} MiB travel; pack fewer of them at a time",
              static_cast<double>(bytes) / (1 << 20), kPackBytesMax >> 20);
}

std::vector<std::string> unpack_baselines(const fs::path& archive) {
  if (!fs::exists(archive)) throw Error("{}: there is no such file", archive.string());
  const base::TempFolder work("kernelseek-unpack");
  run_or_throw({"tar", "--extract", "--file", archive.string(), "--directory", work.path().string()}, kArchiveLimitS,
               fmt::format("{}: not an archive of baselines, or torn", archive.string()));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(work.path())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  if (names.empty()) throw Error("{}: holds no baseline", archive.string());
  // All are checked before any is put in place.
  for (const auto& name : names) check_tree(find_baseline(name, ""), work.path() / name);
  for (const auto& name : names) put_in_place(work.path() / name, name);
  return names;
}

}  // namespace ks::evaluator
