#include "evaluator/candidate.h"

#include <glob.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "base/toml.h"
#include "evaluator/baselines.h"

namespace ks::evaluator {
namespace {

namespace fs = base::fs;

constexpr const char* kMarker = "kernelseek:";

std::string extension_device(const fs::path& file) {
  if (file.extension() == ".cu") return "cuda";
  if (file.extension() == ".cpp" || file.extension() == ".cc") return "cpu";
  return "";
}

void check_device(const std::string& device, const std::string& where) {
  if (device == "cpu" || device == "cuda") return;
  throw Error("{}: unknown device \"{}\"; it is \"cpu\" or \"cuda\"", where, device);
}

/// An operator outside the tree brings its header in its own folder.
void include_operator_folder(Candidate& candidate, const std::string& the_operator) {
  std::error_code ignored;
  if (fs::is_directory(the_operator, ignored)) candidate.includes.push_back(fs::absolute(the_operator).string());
}

/// "operator=NAME device=cpu" behind the marker of one line.
void read_marker(Candidate& candidate, const std::string& words, const std::string& where) {
  std::istringstream stream(words);
  std::string word;
  while (stream >> word) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (value.empty()) throw Error("{}: \"{}\" in the marker line must be key=value", where, word);
    if (key == "operator") {
      candidate.operator_name = value;
    } else if (key == "device") {
      check_device(value, where);
      candidate.device = value;
    } else if (key == "arch") {
      candidate.arch = value;
    } else {
      throw Error("{}: unknown key \"{}\" in the marker line; known: operator, device, arch", where, key);
    }
  }
}

Candidate load_single_file(const fs::path& path, const std::string& operator_override) {
  Candidate candidate;
  candidate.is_single_file = true;
  candidate.folder = fs::absolute(path).parent_path().string();
  candidate.sources = {path.filename().string()};
  candidate.device = extension_device(path);
  if (candidate.device.empty())
    throw Error("{}: a candidate is a .cpp, .cc or .cu file, or a folder with candidate.toml or worker.toml",
                path.string());
  int number = 0;
  for (const auto& line : base::read_lines(path)) {
    ++number;
    const size_t slashes = line.find_first_not_of(" \t");
    if (slashes == std::string::npos || line.compare(slashes, 2, "//") != 0) continue;
    const size_t word = line.find_first_not_of(" \t/", slashes);
    if (word == std::string::npos || line.compare(word, std::string(kMarker).size(), kMarker) != 0) continue;
    const std::string where = fmt::format("{}:{}", path.string(), number);
    read_marker(candidate, line.substr(word + std::string(kMarker).size()), where);
    break;
  }
  if (!operator_override.empty()) candidate.operator_name = operator_override;
  if (candidate.operator_name.empty())
    throw Error(
        "{}:1: does not say which operator it computes; add the line\n  // kernelseek: operator=NAME\nor pass "
        "--operator NAME",
        path.string());
  return candidate;
}

std::string string_at(const base::TomlFile& file, const char* key, const std::string& otherwise) {
  const auto found = file.values.find(key);
  if (found == file.values.end()) return otherwise;
  if (!found->is_string()) throw Error("{}: \"{}\" must be a string", file.where(key), key);
  return found->get<std::string>();
}

void check_keys(const base::TomlFile& file, const std::vector<std::string>& known) {
  for (const auto& [key, value] : file.values.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto near = base::nearest_word(key, known);
    throw Error("{}: unknown key \"{}\"{}; known: {}", file.where(key), key,
                near.empty() ? "" : " (did you mean \"" + near + "\"?)", fmt::join(known, ", "));
  }
}

/// Flags may tune the code, not run other programs, read files that the hash does not cover or write elsewhere.
void check_flags(const base::TomlFile& file, const std::vector<std::string>& flags) {
  for (const auto& flag : flags) {
    std::istringstream pieces(flag);
    for (std::string piece; std::getline(pieces, piece, ',');) {
      const bool runs = piece.find("plugin") != std::string::npos || piece.starts_with("-wrapper") ||
                        piece.find("specs") != std::string::npos ||
                        (piece.starts_with("-B") && !piece.starts_with("-Bs") && piece != "-Bdynamic") ||
                        piece.find("ccbin") != std::string::npos ||
                        piece.find("compiler-bindir") != std::string::npos || piece.starts_with("@") ||
                        piece.starts_with("--run") || piece.starts_with("-fuse-ld") ||
                        piece.starts_with("--options-file");
      const bool reads = piece.starts_with("-I") || piece.starts_with("-include") || piece.starts_with("--include") ||
                         piece.starts_with("-imacros") || piece.starts_with("-isystem") ||
                         piece.starts_with("-iquote") || piece.starts_with("-idirafter");
      const bool writes = piece == "-o" || piece.starts_with("-M") || piece.find("save-temps") != std::string::npos ||
                          piece.starts_with("-keep") || piece.starts_with("--keep") || piece.starts_with("-dump") ||
                          piece.find("profile-use") != std::string::npos ||
                          piece.find("profile-generate") != std::string::npos;
      if (reads)
        throw Error("{}: the flag \"{}\" reads files that the source hash does not cover; name folders in \"includes\"",
                    file.where("flags"), flag);
      if (runs || writes)
        throw Error("{}: the flag \"{}\" is not allowed: it runs another program or writes elsewhere; remove it",
                    file.where("flags"), flag);
    }
  }
}

/// The files that the globs of `sources` name, relative to the folder.
std::vector<std::string> expand_sources(const base::TomlFile& file, const fs::path& folder) {
  std::vector<std::string> result;
  for (const auto& pattern : base::strings_at(file, "sources")) {
    glob_t found{};
    const int status = ::glob((folder / pattern).c_str(), 0, nullptr, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) {
      const auto relative = fs::path(found.gl_pathv[i]).lexically_relative(folder).string();
      if (extension_device(relative).empty()) {
        ::globfree(&found);
        throw Error("{}: \"{}\" is not a .cpp, .cc or .cu file", file.where("sources"), relative);
      }
      result.push_back(relative);
    }
    ::globfree(&found);
    if (status != 0) throw Error("{}: \"{}\" matches no file in {}", file.where("sources"), pattern, folder.string());
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::string required_operator(const base::TomlFile& file, const std::string& operator_override) {
  const std::string own = string_at(file, "operator", "");
  if (!operator_override.empty()) return operator_override;
  if (own.empty())
    throw Error("{}:1: the key \"operator\" is missing; add operator = \"NAME\", or pass --operator NAME", file.path);
  return own;
}

Candidate load_folder(const fs::path& path, const std::string& operator_override) {
  const auto file = base::read_toml_file((path / "candidate.toml").string());
  check_keys(file,
             {"operator", "device", "sources", "includes", "flags", "libs", "arch", "strict", "expect_instructions"});
  Candidate candidate;
  candidate.folder = fs::absolute(path).lexically_normal().string();
  if (candidate.folder.ends_with('/')) candidate.folder.pop_back();
  candidate.operator_name = required_operator(file, operator_override);
  candidate.sources = expand_sources(file, candidate.folder);
  if (candidate.sources.empty()) throw Error("{}: no sources; add sources = [\"name.cpp\"]", file.where("sources"));
  const bool has_cuda = std::any_of(candidate.sources.begin(), candidate.sources.end(),
                                    [](const auto& name) { return extension_device(name) == "cuda"; });
  candidate.device = string_at(file, "device", has_cuda ? "cuda" : "cpu");
  check_device(candidate.device, file.where("device"));
  candidate.includes = base::strings_at(file, "includes");
  candidate.flags = base::strings_at(file, "flags");
  check_flags(file, candidate.flags);
  candidate.libs = base::strings_at(file, "libs");
  candidate.arch = string_at(file, "arch", candidate.arch);
  candidate.expect_instructions = base::strings_at(file, "expect_instructions");
  if (const auto strict = file.values.find("strict"); strict != file.values.end()) {
    if (!strict->is_boolean()) throw Error("{}: \"strict\" must be true or false", file.where("strict"));
    candidate.strict = strict->get<bool>();
  }
  return candidate;
}

/// Words of a command: "{python}" is the project's own interpreter where it has one, "{folder}" the worker's folder.
std::string expand_word(std::string word, const std::string& folder) {
  const auto own_python = environment_folder() / "bin/python3";
  const std::pair<std::string, std::string> replacements[] = {
      {"{python}", fs::exists(own_python) ? own_python.string() : "python3"}, {"{folder}", folder}};
  for (const auto& [from, to] : replacements)
    for (size_t at = word.find(from); at != std::string::npos; at = word.find(from, at + to.size()))
      word.replace(at, from.size(), to);
  return word;
}

Candidate load_worker_folder(const fs::path& path, const std::string& operator_override) {
  const auto file = base::read_toml_file((path / "worker.toml").string());
  check_keys(file, {"operator", "device", "command"});
  Candidate candidate;
  candidate.folder = fs::absolute(path).lexically_normal().string();
  candidate.operator_name = required_operator(file, operator_override);
  candidate.device = string_at(file, "device", "cpu");
  check_device(candidate.device, file.where("device"));
  for (const auto& word : base::strings_at(file, "command"))
    candidate.command.push_back(expand_word(word, candidate.folder));
  if (candidate.command.empty())
    throw Error("{}: the key \"command\" is missing; add command = [\"{{python}}\", \"worker.py\"]",
                file.where("command"));
  return candidate;
}

}  // namespace

Candidate load_candidate(const std::string& path, const std::string& operator_override) {
  Candidate candidate;
  if (!fs::exists(path)) throw Error("{}: there is no such file or folder", path);
  if (!fs::is_directory(path)) {
    candidate = load_single_file(path, operator_override);
  } else if (fs::exists(fs::path(path) / "candidate.toml")) {
    candidate = load_folder(path, operator_override);
  } else if (fs::exists(fs::path(path) / "worker.toml")) {
    candidate = load_worker_folder(path, operator_override);
  } else {
    throw Error("{}: a candidate folder holds candidate.toml (sources) or worker.toml (a program); this has neither",
                path);
  }
  candidate.path = path;
  include_operator_folder(candidate, operator_override);
  return candidate;
}

}  // namespace ks::evaluator
