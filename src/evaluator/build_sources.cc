#include "evaluator/build_sources.h"

#include <deque>

#include "base/hash.h"

namespace ks::evaluator {
namespace {

namespace fs = base::fs;

/// The name in `#include "name"` or `#include <name>`, "" for any other line.
std::string included_name(const std::string& line, bool& quoted) {
  size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line[at] != '#') return "";
  at = line.find_first_not_of(" \t", at + 1);
  if (at == std::string::npos || line.compare(at, 7, "include") != 0) return "";
  at = line.find_first_not_of(" \t", at + 7);
  if (at == std::string::npos || (line[at] != '"' && line[at] != '<')) return "";
  quoted = line[at] == '"';
  const size_t end = line.find(quoted ? '"' : '>', at + 1);
  return end == std::string::npos ? "" : line.substr(at + 1, end - at - 1);
}

/// Where the preprocessor would find `name`, "" if not in our folders.
std::string resolve(const std::string& name, bool quoted, const fs::path& includer,
                    const std::vector<fs::path>& includes) {
  std::error_code ignored;
  std::vector<fs::path> places;
  if (quoted) places.push_back(includer.parent_path());
  places.insert(places.end(), includes.begin(), includes.end());
  for (const auto& place : places) {
    const auto path = (place / name).lexically_normal();
    if (fs::is_regular_file(path, ignored)) return path.string();
  }
  return "";
}

}  // namespace

std::vector<fs::path> include_folders(const Candidate& candidate) {
  std::vector<fs::path> result = {candidate.folder};
  for (const auto& folder : candidate.includes) {
    const fs::path path(folder);
    result.push_back((path.is_absolute() ? path : fs::path(candidate.folder) / path).lexically_normal());
  }
  result.push_back(base::project_root() / "abi");
  return result;
}

std::map<std::string, std::string> find_dependencies(const Candidate& candidate,
                                                     const std::vector<fs::path>& includes) {
  std::map<std::string, std::string> files;
  std::deque<std::string> waiting;
  for (const auto& source : candidate.sources)
    waiting.push_back((fs::path(candidate.folder) / source).lexically_normal().string());
  while (!waiting.empty()) {
    const std::string path = waiting.front();
    waiting.pop_front();
    if (files.contains(path)) continue;
    files[path] = base::read_file(path);
    for (const auto& line : base::read_lines(path)) {
      bool quoted = false;
      const std::string name = included_name(line, quoted);
      if (name.empty()) continue;
      if (const std::string found = resolve(name, quoted, path, includes); !found.empty()) waiting.push_back(found);
    }
  }
  return files;
}

std::string hash_dependencies(const Candidate& candidate, const std::map<std::string, std::string>& files,
                              const std::vector<std::string>& settings) {
  std::map<std::string, std::string> by_place;
  for (const auto& [path, text] : files)
    by_place[fs::path(path).lexically_relative(candidate.folder).string()] = base::sha256_hex(text);
  std::string all;
  for (const auto& [place, hash] : by_place) {
    // Where the ABI lies relative to the candidate says nothing about the binary.
    const bool is_outside = place.starts_with("../");
    all += (is_outside ? fs::path(place).filename().string() : place) + "\n" + hash + "\n";
  }
  for (const auto& setting : settings) all += setting + "\n";
  return base::sha256_hex(all);
}

std::string source_hash_of(const Candidate& candidate, const std::string& device,
                           const std::map<std::string, std::string>& files) {
  std::vector<std::string> own = {device, candidate.arch};
  for (const auto* list : {&candidate.flags, &candidate.libs}) own.insert(own.end(), list->begin(), list->end());
  return hash_dependencies(candidate, files, own);
}

}  // namespace ks::evaluator
