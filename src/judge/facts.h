// What a run lets its agent's stop hook know: the goal, the last figures, and which version they belong to. The driver
// writes the file; the hook answers from it at once and evaluates nothing.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace ks::judge {

/// facts.json in the folder told/ of a run.
struct Facts {
  std::string goal;
  std::string
      goal_state;      ///< of the last evaluation, or of the judge if it spoke later: "met", "not_met", "undecided", ""
  int evaluation = 0;  ///< number of the last one, 0: none
  std::string evaluated_hash;        ///< content_hash() of what it judged
  std::vector<std::string> figures;  ///< the goal's comparisons
  std::string question;              ///< the one to ask with a refusal; "" none
  std::string candidate;             ///< path of the candidate as the agent sees it
  int cap = 3;                       ///< refusals in a row before a stop is let through
};

Json to_json(const Facts& facts);
/// Throws ks::Error naming the file and the key.
Facts read_facts(const base::fs::path& path);

/// SHA-256 over the names and contents of a file's or folder's regular files.
std::string content_hash(const base::fs::path& path);

/// What the hook says.
struct HookAnswer {
  bool refuse = false;
  std::string text;
};

/// Refuses where the files changed since the last evaluation, there was none, or the last figures do not meet the goal;
/// `refused` refusals in a row already: lets go at the cap.
HookAnswer answer_stop(const Facts& facts, const std::string& hash_now, int refused);

}  // namespace ks::judge
