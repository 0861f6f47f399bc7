// Keeps secrets out of traces and reports: the values of environment variables whose names say that they are secret,
// and texts that look like well-known kinds of keys, are replaced before anything is written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace ks::agents {

class Redactor {
 public:
  /// Knows the secrets of this process's environment.
  Redactor();
  /// A further secret, e.g. the value of a key that a task names.
  void add(const std::string& name, const std::string& value);
  std::string redact(std::string text) const;
  /// Every text in a JSON value, keys included.
  Json redact(const Json& json) const;

 private:
  std::vector<std::pair<std::string, std::string>> secrets_;  ///< value, name; longest first
};

/// True for names such as OPENAI_API_KEY, GITHUB_TOKEN, DB_PASSWORD.
bool is_secret_name(const std::string& name);

}  // namespace ks::agents
