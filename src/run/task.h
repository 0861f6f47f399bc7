// A task file: which operator, where the agent starts, who asks it, when the run is over. docs/formats/task.md
// documents every key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "steering/model_questioner.h"

namespace ks::run {

struct Budget {
  double minutes = 0;      ///< 0: no limit
  int evaluations = 0;     ///< 0: no limit
  int64_t tokens = 0;      ///< of the agent's model, input and output; 0: no limit
  double cost_usd = 0;     ///< 0: no limit
  double gpu_seconds = 0;  ///< of evaluations on a GPU; 0: no limit
};

struct Task {
  std::string path;  ///< of the file, for error messages
  std::string name;
  std::string operator_name;
  std::string grid = "demo";
  std::string filter;
  std::string device = "cpu";
  std::string candidate;  ///< absolute path of the file or folder to start from
  std::string goal;
  std::string agent = "tuner";
  std::string model;  ///< for agents that have one
  std::string questioner = "bank";
  std::string questions_file;   ///< directives, for the questioner "hints"
  double question_seconds = 0;  ///< a person's time for a question; 0: until it comes or the minutes are over
  steering::ModelQuestioner questioner_model;
  std::string instructions;  ///< further words for the agent
  uint64_t seed = 1;
  std::vector<std::string> baselines;  ///< empty: every installed one
  int threads = 0;                     ///< 0: every core
  double evaluation_seconds = 0;       ///< time budget of one evaluation; 0: as needed
  double judge_seconds = 0;            ///< of each of the judge's evaluations; 0: as needed
  int hidden_scenarios = 4;            ///< of the judge's hidden grid; 0: none
  Budget budget;
};

/// Reads and checks a task. Throws ks::Error "file:line: … mend".
Task read_task(const base::fs::path& path);

/// The same from a text whose relative paths are seen from `folder`.
Task parse_task(const std::string& text, const std::string& origin, const base::fs::path& folder);

/// The text of a task file that reads as `task`.
std::string task_text(const Task& task);

}  // namespace ks::run
