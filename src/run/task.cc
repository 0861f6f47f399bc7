#include "run/task.h"

#include <map>
#include <set>

#include "base/toml.h"
#include "goal/goal.h"

namespace ks::run {
namespace {

const std::map<std::string, std::vector<std::string>> kKeys = {
    {"",
     {"name",
      "operator",
      "grid",
      "filter",
      "device",
      "candidate",
      "goal",
      "agent",
      "model",
      "questioner",
      "questions_file",
      "question_seconds",
      "questioner_model",
      "instructions",
      "seed",
      "baselines",
      "threads",
      "budget",
      "evaluation",
      "judge"}},
    {"budget", {"minutes", "evaluations", "tokens", "cost_usd", "gpu_seconds"}},
    {"questioner_model", {"url", "name", "key_env", "seconds"}},
    {"evaluation", {"seconds"}},
    {"judge", {"seconds", "hidden_scenarios"}}};

void check_keys(const base::TomlFile& file, const Json& table, const std::string& name) {
  const auto& known = kKeys.at(name);
  for (const auto& [key, value] : table.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string full = name.empty() ? key : name + "." + key;
    const std::string near = base::nearest_word(key, known);
    throw Error("{}: unknown key \"{}\"{}", file.where(full), full,
                near.empty() ? fmt::format("; known: {}", fmt::join(known, ", "))
                             : fmt::format("; did you mean \"{}\"?", near));
  }
}

/// Reads one key into `target`, with an error that names its line.
template <typename T>
void take(const base::TomlFile& file, const Json& table, const std::string& prefix, const char* key, T& target) {
  const auto found = table.find(key);
  if (found == table.end()) return;
  const std::string full = prefix.empty() ? key : prefix + "." + key;
  bool fits = false;
  if constexpr (std::is_same_v<T, std::string>)
    fits = found->is_string();
  else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    fits = found->is_array();
    for (const Json& entry : *found) fits = fits && entry.is_string();
  } else if constexpr (std::is_floating_point_v<T>)
    fits = found->is_number() && found->template get<double>() >= 0;
  else
    fits = found->is_number_integer() && found->template get<int64_t>() >= 0;
  if (!fits)
    throw Error("{}: \"{}\" must be {}, not {}", file.where(full), full,
                std::is_same_v<T, std::string>                ? "a text"
                : std::is_same_v<T, std::vector<std::string>> ? "a list of texts"
                : std::is_floating_point_v<T>                 ? "a number of at least 0"
                                                              : "a whole number of at least 0",
                found->dump());
  target = found->template get<T>();
}

const Json& table_at(const base::TomlFile& file, const char* name) {
  static const Json kEmpty = Json::object();
  const auto found = file.values.find(name);
  if (found == file.values.end()) return kEmpty;
  if (!found->is_object()) throw Error("{}: \"{}\" must be a table: [{}]", file.where(name), name, name);
  check_keys(file, *found, name);
  return *found;
}

std::string absolute(const base::fs::path& folder, const std::string& path) {
  return base::fs::absolute(folder / path).lexically_normal().string();
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos;
}

void check(const base::TomlFile& file, Task& task, const base::fs::path& folder) {
  for (const char* key : {"operator", "candidate", "goal"})
    if (!file.values.contains(key)) throw Error("{}: the key \"{}\" is missing", file.path, key);
  if (task.budget.minutes == 0 && task.budget.evaluations == 0)
    throw Error("{}: [budget] needs \"minutes\" or \"evaluations\", so that the run ends", file.where("budget"));
  task.candidate = absolute(folder, task.candidate);
  if (!base::fs::exists(task.candidate))
    throw Error("{}: the candidate {} does not exist", file.where("candidate"), task.candidate);
  if (looks_like_path(task.operator_name)) task.operator_name = absolute(folder, task.operator_name);
  if (looks_like_path(task.grid)) task.grid = absolute(folder, task.grid);
  if (!task.questions_file.empty()) task.questions_file = absolute(folder, task.questions_file);
  for (auto& baseline : task.baselines)
    if (baseline.rfind("candidate:", 0) == 0) baseline = "candidate:" + absolute(folder, baseline.substr(10));
  try {
    goal::Goal goal(task.goal);
  } catch (const Error& e) {
    throw Error("{}: goal: {}", file.where("goal"), e.what());
  }
  if (task.name.empty()) task.name = base::fs::path(task.path).stem().string();
  for (char& c : task.name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') c = '-';
}

Task from_toml(const base::TomlFile& file, const base::fs::path& folder) {
  check_keys(file, file.values, "");
  Task task;
  task.path = file.path;
  const Json& root = file.values;
  take(file, root, "", "name", task.name);
  take(file, root, "", "operator", task.operator_name);
  take(file, root, "", "grid", task.grid);
  take(file, root, "", "filter", task.filter);
  take(file, root, "", "device", task.device);
  take(file, root, "", "candidate", task.candidate);
  take(file, root, "", "goal", task.goal);
  take(file, root, "", "agent", task.agent);
  take(file, root, "", "model", task.model);
  take(file, root, "", "questioner", task.questioner);
  take(file, root, "", "questions_file", task.questions_file);
  take(file, root, "", "question_seconds", task.question_seconds);
  take(file, root, "", "instructions", task.instructions);
  const Json& model = table_at(file, "questioner_model");
  take(file, model, "questioner_model", "url", task.questioner_model.url);
  take(file, model, "questioner_model", "name", task.questioner_model.name);
  take(file, model, "questioner_model", "key_env", task.questioner_model.key_env);
  take(file, model, "questioner_model", "seconds", task.questioner_model.seconds);
  take(file, root, "", "seed", task.seed);
  take(file, root, "", "baselines", task.baselines);
  take(file, root, "", "threads", task.threads);
  const Json& budget = table_at(file, "budget");
  take(file, budget, "budget", "minutes", task.budget.minutes);
  take(file, budget, "budget", "evaluations", task.budget.evaluations);
  take(file, budget, "budget", "tokens", task.budget.tokens);
  take(file, budget, "budget", "cost_usd", task.budget.cost_usd);
  take(file, budget, "budget", "gpu_seconds", task.budget.gpu_seconds);
  take(file, table_at(file, "evaluation"), "evaluation", "seconds", task.evaluation_seconds);
  const Json& judge = table_at(file, "judge");
  take(file, judge, "judge", "seconds", task.judge_seconds);
  take(file, judge, "judge", "hidden_scenarios", task.hidden_scenarios);
  check(file, task, folder);
  return task;
}

}  // namespace

Task read_task(const base::fs::path& path) {
  return from_toml(base::read_toml_file(path.string()), base::fs::absolute(path).parent_path());
}

Task parse_task(const std::string& text, const std::string& origin, const base::fs::path& folder) {
  return from_toml(base::parse_toml(text, origin), folder);
}

}  // namespace ks::run
