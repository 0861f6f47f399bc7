// TOML files as JSON values, with the line of every key for error messages.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace ks::base {

/// A parsed TOML file. Dates become strings.
struct TomlFile {
  std::string path;
  Json values;                       ///< the root table
  std::map<std::string, int> lines;  ///< "task.budget.minutes" or "question[3].id" to its line

  /// "path:line" of a key (or of the file where the key is absent), to begin an error message with.
  std::string where(const std::string& key) const;
};

/// Throws ks::Error "path:line: …" where the file is malformed.
TomlFile read_toml_file(const std::string& path);

/// The same for a text; `origin` takes the place of the path.
TomlFile parse_toml(const std::string& text, const std::string& origin);

/// The list of strings at a key of the root table; empty where the key is absent. Throws ks::Error naming the line
/// where it is anything else.
std::vector<std::string> strings_at(const TomlFile& file, const std::string& key);

}  // namespace ks::base
