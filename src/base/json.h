// JSON values (nlohmann, keys in order of insertion) with errors that name the origin, the line and the key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ks {
using Json = nlohmann::ordered_json;
}

namespace ks::base {

/// Parses one JSON text; throws ks::Error "origin:line: …" where it is malformed.
Json parse_json(std::string_view text, const std::string& origin);

/// Reads and parses a file.
Json read_json_file(const std::string& path);

/// One line, no trailing newline; invalid UTF-8 is replaced, non-finite numbers become null.
std::string to_line(const Json& value);

/// `object[key]`, converted; throws ks::Error naming `origin` and the key where it is missing or of another type.
template <typename T>
T require(const Json& object, const char* key, const std::string& origin) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error("{}: the key \"{}\" is missing", origin, key);
  try {
    return found->template get<T>();
  } catch (const nlohmann::json::exception& e) {
    throw Error("{}: the key \"{}\" has the wrong type: {}", origin, key, found->dump());
  }
}

/// `object[key]` converted, or `otherwise` where it is missing or null.
template <typename T>
T value_or(const Json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  return found->template get<T>();
}

}  // namespace ks::base
