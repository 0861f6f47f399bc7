// Which language model, where, at what price: data/models/*.toml, a file per provider. A task names one as
// "PROVIDER:MODEL", or with a file of its own as "PATH.toml:MODEL". docs/formats/model.md documents every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

namespace ks::agents {

/// US dollars for a million tokens.
struct Price {
  double input = 0, cached = 0, cache_write = 0, output = 0;
};

struct ModelSpec {
  std::string provider, model, file;
  std::string wire;  ///< "chat", "responses" or "messages"
  std::string url;
  std::string key_variable, key;  ///< the environment variable with the key, and its value
  int max_output = 0;             ///< tokens of one answer; 0: the provider's
  std::string max_output_key = "max_completion_tokens";
  int64_t context_tokens = 200000;
  double silence_s = 600;  ///< without a byte
  int attempts = 6;        ///< of a request that fails in passing; rate limits are waited for beyond that
  double first_wait_s = 1;
  double rate_limit_minutes = 60;  ///< how long rate limits are waited for
  std::optional<Price> price;      ///< nothing: not known
};

/// Reads a provider's file for one model; the key comes from the environment. Throws ks::Error "file:line: …".
ModelSpec read_model(const base::fs::path& file, const std::string& model);

/// "openai:gpt-5.4" or "own.toml:name" (`folder`: where a relative path is seen from).
ModelSpec find_model(const std::string& name, const base::fs::path& folder);

}  // namespace ks::agents
