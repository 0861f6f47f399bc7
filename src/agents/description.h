// An agent program as data, data/agents/*.toml: how to start it headless, go on with its session, read what it prints,
// and tell that it is done or that its provider asks it to wait. docs/formats/agent.md documents every key.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace ks::agents {

/// Matches a JSON line by its "type", and a key's value if one is named.
struct LineMatch {
  std::string type, key;
  Json value;
  bool is_set() const { return !type.empty(); }
  bool matches(const Json& line) const;
};

struct Description {
  std::string name, file;
  std::string program;               ///< looked up in PATH by doctor; "" any
  std::string tested;                ///< "live" or "recorded"
  std::vector<std::string> version;  ///< arguments that print it
  /// Command lines. The word {options} is replaced by the two options below; see docs/formats/agent.md for the others.
  std::vector<std::string> start, resume;
  std::vector<std::string> model_option;     ///< where a model is given
  std::string endpoint;                      ///< variable of ours that names another server for its model
  std::vector<std::string> endpoint_option;  ///< where that variable is set, with {endpoint}
  LineMatch session_from, finished, failed;
  std::string session_key;  ///< key of the line that session_from matches
  std::string events;       ///< how to read its output: a stream format, or "text"
  std::string trajectory;   ///< format of the transcript at {log}, read after each turn; "" none
  bool needs_text = false;  ///< a turn without any text of the agent's failed
  bool message_on_stdin = false;
  bool evaluate_after_turn = false;  ///< it cannot ask for evaluations itself
  bool usage_is_cumulative = false;
  std::vector<std::string> rate_limit;            ///< texts that say: wait
  std::vector<std::string> failed_text;           ///< texts in its output or errors that say: this turn failed
  std::vector<std::string> transcripts;           ///< folders under HOME
  std::vector<std::string> credentials;           ///< files under the person's HOME that its own HOME has too
  std::map<std::string, std::string> home_files;  ///< files of its HOME, by path, that are written for it
  std::vector<std::string> environment;           ///< variables that it gets from ours
  std::vector<std::string> unset;
  std::map<std::string, std::string> set;
  std::string settings;  ///< content of the file {settings}
};

/// Reads one; throws ks::Error "file:line: …".
Description read_description(const base::fs::path& path);

/// All of data/agents, by name.
std::map<std::string, Description> all_descriptions();

/// The one of a name; throws ks::Error with the nearest known name.
Description find_description(const std::string& name);

/// `words` with {name} replaced by values.
std::vector<std::string> filled(const std::vector<std::string>& words,
                                const std::map<std::string, std::string>& values);
std::string filled(std::string text, const std::map<std::string, std::string>& values);

}  // namespace ks::agents
