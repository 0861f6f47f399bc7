#include "experiment/plan.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/toml.h"
#include "judge/facts.h"
#include "run/asker.h"

namespace ks::experiment {
namespace {
namespace fs = base::fs;

/// A table of the plan while it is read.
class PlanTable {
 public:
  PlanTable(const base::TomlFile& file, const Json& table, std::string prefix, std::vector<std::string> known)
      : file_(file), table_(table), prefix_(std::move(prefix)) {
    if (!table.is_object()) throw Error("{}: must be a table", file.where(prefix_));
    for (const auto& [key, value] : table.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = base::nearest_word(key, known);
      throw Error("{}: unknown key \"{}\"{}", where(key), key,
                  near.empty() ? fmt::format("; known: {}", fmt::join(known, ", "))
                               : fmt::format("; did you mean \"{}\"?", near));
    }
  }
  std::string where(const std::string& key) const { return file_.where(prefix_.empty() ? key : prefix_ + "." + key); }
  std::string text(const char* key, bool is_required = false) const {
    const auto found = table_.find(key);
    if (found == table_.end()) {
      if (is_required) throw Error("{}: the key \"{}\" is missing", file_.where(prefix_), key);
      return "";
    }
    if (!found->is_string()) throw Error("{}: \"{}\" must be a text", where(key), key);
    return found->get<std::string>();
  }
  double number(const char* key) const {
    const auto found = table_.find(key);
    if (found == table_.end()) return 0;
    if (!found->is_number() || found->get<double>() < 0)
      throw Error("{}: \"{}\" must be a number of at least 0", where(key), key);
    return found->get<double>();
  }

 private:
  const base::TomlFile& file_;
  const Json& table_;
  std::string prefix_;
};

std::vector<uint64_t> read_seeds(const base::TomlFile& file) {
  std::vector<uint64_t> seeds;
  const Json value = base::value_or<Json>(file.values, "seeds", Json());
  if (value.is_number_integer() && value.get<int64_t>() > 0) {
    for (int64_t seed = 1; seed <= value.get<int64_t>(); ++seed) seeds.push_back(static_cast<uint64_t>(seed));
    return seeds;
  }
  bool fits = value.is_array() && !value.empty();
  for (const Json& seed : value.is_array() ? value : Json::array()) {
    fits = fits && seed.is_number_integer() && seed.get<int64_t>() >= 0;
    if (fits) seeds.push_back(seed.get<uint64_t>());
  }
  if (!fits || std::set(seeds.begin(), seeds.end()).size() != seeds.size())
    throw Error("{}: \"seeds\" must be how many there are, or a list of different whole numbers", file.where("seeds"));
  return seeds;
}

void read_arms(const base::TomlFile& file, const fs::path& folder, Plan& plan) {
  const auto arms = file.values.find("arms");
  if (arms == file.values.end() || !arms->is_object() || arms->size() < 2)
    throw Error("{}: at least two arms are needed, each a table [arms.NAME] with a questioner", file.where("arms"));
  for (const auto& [name, table] : arms->items()) {
    const PlanTable read(file, table, "arms." + name, {"questioner", "agent", "model", "questions_file"});
    Arm arm{name, read.text("questioner", true), read.text("agent"), read.text("model"), read.text("questions_file")};
    if (!arm.questions_file.empty())
      arm.questions_file = fs::absolute(folder / arm.questions_file).lexically_normal().string();
    if (arm.questioner == "human")
      throw Error("{}: a person cannot be asked in an experiment's runs", read.where("questioner"));
    plan.arms.push_back(std::move(arm));
  }
}

void read_tasks(const base::TomlFile& file, const fs::path& folder, Plan& plan) {
  const auto tasks = file.values.find("task");
  if (tasks == file.values.end() || !tasks->is_array() || tasks->empty())
    throw Error("{}: there is no [[task]] with a file", file.path);
  for (size_t i = 0; i < tasks->size(); ++i) {
    const std::string key = fmt::format("task[{}]", i);
    const PlanTable read(file, (*tasks)[i], key, {"file", "heldout_grid", "heldout_filter", "heldout_seconds"});
    PlanTask task;
    task.task = run::read_task(folder / read.text("file", true));
    task.name = task.task.name;
    task.heldout_grid = read.text("heldout_grid");
    if (task.heldout_grid.find('/') != std::string::npos)
      task.heldout_grid = fs::absolute(folder / task.heldout_grid).lexically_normal().string();
    if (task.heldout_grid.empty()) task.heldout_grid = task.task.grid;
    task.heldout_filter = read.text("heldout_filter");
    task.heldout_seconds = read.number("heldout_seconds");
    for (const auto& other : plan.tasks)
      if (other.name == task.name) throw Error("{}: two tasks are called \"{}\"", file.where(key), task.name);
    plan.tasks.push_back(std::move(task));
  }
}

void check_plan(const base::TomlFile& file, const Plan& plan) {
  if (plan.budget.minutes == 0 && plan.budget.evaluations == 0)
    throw Error("{}: [budget] needs \"evaluations\" or \"minutes\", the same for every run", file.where("budget"));
  const bool is_arm =
      std::any_of(plan.arms.begin(), plan.arms.end(), [&](const Arm& arm) { return arm.name == plan.treatment; });
  if (!is_arm) throw Error("{}: \"treatment\" must name one of the arms", file.where("treatment"));
  for (const auto& cell : cells_of(plan)) {
    try {
      run::check_questioner(cell_task(plan, cell));
    } catch (const Error& e) {
      throw Error("{}: {}", file.where("arms." + plan.arms[cell.arm].name), e.what());
    }
  }
}

}  // namespace

Plan read_plan(const fs::path& path) {
  const auto file = base::read_toml_file(path.string());
  const fs::path folder = fs::absolute(path).parent_path();
  const PlanTable read(file, file.values, "", {"name", "seeds", "treatment", "budget", "arms", "task"});
  Plan plan;
  plan.path = path.string();
  plan.text = base::read_file(path);
  plan.name = read.text("name");
  if (plan.name.empty()) plan.name = path.stem().string();
  plan.treatment = read.text("treatment", true);
  plan.seeds = read_seeds(file);
  const Json budget = base::value_or<Json>(file.values, "budget", Json::object());
  const PlanTable limits(file, budget, "budget", {"evaluations", "minutes", "tokens", "cost_usd"});
  plan.budget = {limits.number("minutes"), static_cast<int>(limits.number("evaluations")),
                 static_cast<int64_t>(limits.number("tokens")), limits.number("cost_usd")};
  read_arms(file, folder, plan);
  read_tasks(file, folder, plan);
  check_plan(file, plan);
  return plan;
}

std::vector<Cell> cells_of(const Plan& plan) {
  std::vector<Cell> cells;
  for (const uint64_t seed : plan.seeds)
    for (size_t task = 0; task < plan.tasks.size(); ++task) {
      std::vector<size_t> order;
      for (size_t arm = 0; arm < plan.arms.size(); ++arm) order.push_back(arm);
      base::Random random(base::mix64(seed, task));
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      for (const size_t arm : order) cells.push_back({task, arm, seed});
    }
  return cells;
}

std::string cell_name(const Plan& plan, const Cell& cell) {
  return fmt::format("{}-{}-{}", plan.tasks[cell.task].name, cell.seed, plan.arms[cell.arm].name);
}

run::Task cell_task(const Plan& plan, const Cell& cell) {
  const Arm& arm = plan.arms[cell.arm];
  run::Task task = plan.tasks[cell.task].task;
  task.name = "run";
  task.questioner = arm.questioner;
  if (!arm.agent.empty()) task.agent = arm.agent;
  if (!arm.model.empty()) task.model = arm.model;
  if (!arm.questions_file.empty()) task.questions_file = arm.questions_file;
  task.seed = cell.seed;
  task.budget = plan.budget;
  return task;
}

std::string plan_hash(const Plan& plan) {
  std::string all = plan.text;
  for (const auto& task : plan.tasks) {
    all += base::read_file(task.task.path) + judge::content_hash(task.task.candidate);
    for (const auto& baseline : task.task.baselines)
      if (baseline.starts_with("candidate:")) all += judge::content_hash(baseline.substr(10));
  }
  for (const auto& arm : plan.arms)
    if (!arm.questions_file.empty()) all += base::read_file(arm.questions_file);
  return base::sha256_hex(all);
}

}  // namespace ks::experiment
