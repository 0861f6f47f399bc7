#include "judge/facts.h"

#include <algorithm>

#include "base/hash.h"

namespace ks::judge {
namespace fs = base::fs;

Json to_json(const Facts& facts) {
  return {{"schema", "kernelseek.facts/1"},
          {"goal", facts.goal},
          {"goal_state", facts.goal_state},
          {"evaluation", facts.evaluation},
          {"evaluated_hash", facts.evaluated_hash},
          {"figures", facts.figures},
          {"question", facts.question},
          {"candidate", facts.candidate},
          {"cap", facts.cap}};
}

Facts read_facts(const fs::path& path) {
  const Json json = base::read_json_file(path.string());
  Facts facts;
  facts.goal = base::require<std::string>(json, "goal", path.string());
  facts.goal_state = base::value_or<std::string>(json, "goal_state", "");
  facts.evaluation = base::value_or(json, "evaluation", 0);
  facts.evaluated_hash = base::value_or<std::string>(json, "evaluated_hash", "");
  facts.figures = base::value_or<std::vector<std::string>>(json, "figures", {});
  facts.question = base::value_or<std::string>(json, "question", "");
  facts.candidate = base::value_or<std::string>(json, "candidate", "");
  facts.cap = base::value_or(json, "cap", 3);
  return facts;
}

std::string content_hash(const fs::path& path) {
  if (!fs::exists(path)) return "";
  if (!fs::is_directory(path)) return base::sha256_hex(base::read_file(path));
  std::vector<fs::path> files;
  for (auto at = fs::recursive_directory_iterator(path); at != fs::recursive_directory_iterator(); ++at) {
    if (at->path().filename() == ".git")
      at.disable_recursion_pending();
    else if (fs::is_regular_file(at->symlink_status()))
      files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  std::string all;
  for (const auto& file : files)
    all += file.lexically_relative(path).string() + " " + base::sha256_hex(base::read_file(file)) + "\n";
  return base::sha256_hex(all);
}

HookAnswer answer_stop(const Facts& facts, const std::string& hash_now, int refused) {
  if (refused >= facts.cap) return {};
  const std::string ask = facts.question.empty() ? "" : "\n\n" + facts.question;
  if (facts.evaluation == 0)
    return {true, "No evaluation has been made in this run; the goal is " + facts.goal + "." + ask};
  if (hash_now != facts.evaluated_hash)
    return {true,
            fmt::format("The files changed after evaluation {}, the last one; what lies there now was never judged. "
                        "The goal is {}.{}",
                        facts.evaluation, facts.goal, ask)};
  // Met by known figures: whether it holds is for the judge, who evaluates afresh.
  if (facts.goal_state == "met") return {};
  return {true, fmt::format("The goal ({}) is {} by evaluation {}:\n{}{}", facts.goal,
                            facts.goal_state == "undecided" ? "undecided" : "not met", facts.evaluation,
                            fmt::join(facts.figures, "\n"), ask)};
}

}  // namespace ks::judge
