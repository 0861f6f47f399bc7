#include "experiment/result.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/table.h"
#include "evaluator/provenance.h"
#include "stats/intervals.h"

namespace ks::experiment {
namespace {

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

std::optional<double> optional_number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_number() ? std::nullopt : std::optional(found->get<double>());
}

std::optional<double> outcome_of(const CellResult& cell, const std::string& outcome) {
  return outcome == "heldout" ? cell.heldout_log : cell.area();
}

Comparison compare_arms(const std::string& treatment, const std::string& control, const std::string& task,
                        const std::string& outcome, const std::vector<CellResult>& cells) {
  std::map<std::pair<std::string, uint64_t>, std::pair<const CellResult*, const CellResult*>> blocks;
  for (const auto& cell : cells) {
    if (!task.empty() && cell.task != task) continue;
    auto& block = blocks[{cell.task, cell.seed}];
    if (cell.arm == treatment) block.first = &cell;
    if (cell.arm == control) block.second = &cell;
  }
  Comparison comparison{task, outcome, control, {}, 0};
  std::vector<double> differences;
  for (const auto& [key, block] : blocks) {
    if (block.first == nullptr || block.second == nullptr) continue;
    const auto treated = outcome_of(*block.first, outcome), other = outcome_of(*block.second, outcome);
    if (treated && other)
      differences.push_back(*treated - *other);
    else
      ++comparison.without_figure;
  }
  comparison.test = stats::paired_test(differences);
  return comparison;
}

Json to_json(const Comparison& comparison) {
  const auto& test = comparison.test;
  return {{"task", comparison.task},
          {"outcome", comparison.outcome},
          {"control", comparison.control},
          {"pairs", test.pairs},
          {"without_figure", comparison.without_figure},
          {"mean_log", test.mean},
          {"sd_log", test.sd},
          {"low_log", test.t.low},
          {"high_log", test.t.high},
          {"t_p", test.t_p},
          {"sign_flip_p", test.flip_p},
          {"detectable_log", test.detectable}};
}

/// A baseline that is a candidate of this project, by its place in it.
std::vector<std::string> shown_baselines(const std::vector<std::string>& baselines) {
  std::vector<std::string> shown;
  const std::string inside = "candidate:" + base::project_root().string() + "/";
  for (const auto& name : baselines)
    shown.push_back(name.starts_with(inside) ? "candidate:" + name.substr(inside.size()) : name);
  return shown;
}

std::string percent_text(double log_value) {
  return fmt::format("{:+.1f} %", 100 * std::expm1(log_value));
}

/// Median over the seeds of an arm on a task.
double median_of(const std::vector<CellResult>& cells, const std::string& task, const std::string& arm,
                 const std::string& outcome) {
  std::vector<double> values;
  for (const auto& cell : cells)
    if (cell.task == task && cell.arm == arm)
      if (const auto value = outcome_of(cell, outcome)) values.push_back(*value);
  return values.empty() ? std::nan("") : stats::median(values);
}

}  // namespace

std::optional<double> CellResult::area() const {
  double sum = 0;
  int count = 0;
  for (const auto& value : curve)
    if (value) sum += *value, ++count;
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

Json to_json(const CellResult& cell) {
  Json curve = Json::array();
  for (const auto& value : cell.curve) curve.push_back(number_or_null(value));
  return {{"task", cell.task},
          {"arm", cell.arm},
          {"seed", cell.seed},
          {"evaluations", cell.evaluations},
          {"questions", cell.questions},
          {"answered", cell.answered},
          {"reason", cell.reason},
          {"decision", cell.decision},
          {"heldout_log", number_or_null(cell.heldout_log)},
          {"heldout_log_low", number_or_null(cell.heldout_log_low)},
          {"heldout_log_high", number_or_null(cell.heldout_log_high)},
          {"heldout_correct", cell.heldout_correct},
          {"heldout_total", cell.heldout_total},
          {"curve", curve},
          {"area", number_or_null(cell.area())},
          {"wall_s", cell.wall_s},
          {"candidate_hash", cell.candidate_hash}};
}

CellResult cell_from_json(const Json& json, const std::string& origin) {
  CellResult cell;
  cell.task = base::require<std::string>(json, "task", origin);
  cell.arm = base::require<std::string>(json, "arm", origin);
  cell.seed = base::require<uint64_t>(json, "seed", origin);
  cell.evaluations = base::require<int>(json, "evaluations", origin);
  cell.questions = base::require<int>(json, "questions", origin);
  cell.answered = base::require<int>(json, "answered", origin);
  cell.reason = base::require<std::string>(json, "reason", origin);
  cell.decision = base::require<std::string>(json, "decision", origin);
  cell.heldout_log = optional_number(json, "heldout_log");
  cell.heldout_log_low = optional_number(json, "heldout_log_low");
  cell.heldout_log_high = optional_number(json, "heldout_log_high");
  cell.heldout_correct = base::require<int>(json, "heldout_correct", origin);
  cell.heldout_total = base::require<int>(json, "heldout_total", origin);
  for (const Json& value : base::require<Json>(json, "curve", origin))
    cell.curve.push_back(value.is_number() ? std::optional(value.get<double>()) : std::nullopt);
  cell.wall_s = base::value_or(json, "wall_s", 0.0);
  cell.candidate_hash = base::value_or<std::string>(json, "candidate_hash", "");
  return cell;
}

std::vector<Comparison> compare(const Plan& plan, const std::vector<CellResult>& cells) {
  std::vector<Comparison> all;
  std::vector<std::string> tasks;
  for (const auto& task : plan.tasks) tasks.push_back(task.name);
  if (tasks.size() > 1) tasks.emplace_back("");
  for (const auto& task : tasks)
    for (const char* outcome : {"heldout", "area"})
      for (const auto& arm : plan.arms)
        if (arm.name != plan.treatment) all.push_back(compare_arms(plan.treatment, arm.name, task, outcome, cells));
  return all;
}

bool has_equal_evaluations(const Plan& plan, const std::vector<CellResult>& cells) {
  return plan.budget.evaluations > 0 && std::all_of(cells.begin(), cells.end(), [&](const CellResult& cell) {
           return cell.evaluations == plan.budget.evaluations;
         });
}

Json record_of(const Plan& plan, const Json& frozen, const std::vector<CellResult>& cells) {
  Json record = {{"schema", kExperimentSchema}, {"name", plan.name},
                 {"treatment", plan.treatment}, {"frozen", frozen},
                 {"seeds", plan.seeds},         {"planned_cells", cells_of(plan).size()}};
  record["budget"] = {{"evaluations", plan.budget.evaluations},
                      {"minutes", plan.budget.minutes},
                      {"tokens", plan.budget.tokens},
                      {"cost_usd", plan.budget.cost_usd}};
  record["arms"] = Json::array();
  for (const auto& arm : plan.arms)
    record["arms"].push_back({{"name", arm.name}, {"questioner", arm.questioner}, {"agent", arm.agent}});
  record["tasks"] = Json::array();
  for (const auto& task : plan.tasks)
    record["tasks"].push_back({{"name", task.name},
                               {"operator", task.task.operator_name},
                               {"agent", task.task.agent},
                               {"goal", task.task.goal},
                               {"baselines", shown_baselines(task.task.baselines)}});
  record["host"] = evaluator::describe_host(plan.tasks.front().task.device, plan.tasks.front().task.threads);
  record["equal_evaluations"] = has_equal_evaluations(plan, cells);
  record["comparisons"] = Json::array();
  for (const auto& comparison : compare(plan, cells)) record["comparisons"].push_back(to_json(comparison));
  record["cells"] = Json::array();
  for (const auto& cell : cells) record["cells"].push_back(to_json(cell));
  return record;
}

std::string result_text(const Plan& plan, const std::vector<CellResult>& cells) {
  base::TextTable arms({"task", "arm", "runs", "median held out", "median of the curve", "questions", "answered"});
  for (const auto& task : plan.tasks)
    for (const auto& arm : plan.arms) {
      int runs = 0, questions = 0, answered = 0;
      for (const auto& cell : cells)
        if (cell.task == task.name && cell.arm == arm.name)
          ++runs, questions += cell.questions, answered += cell.answered;
      arms.add({task.name, arm.name, std::to_string(runs),
                fmt::format("{:.3f}x", std::exp(median_of(cells, task.name, arm.name, "heldout"))),
                fmt::format("{:.3f}x", std::exp(median_of(cells, task.name, arm.name, "area"))),
                std::to_string(questions), std::to_string(answered)});
    }
  base::TextTable tests({"task", "outcome", plan.treatment + " against", "pairs", "difference", "95 % interval",
                         "p (t)", "p (sign flip)", "80 % power from"});
  for (const auto& comparison : compare(plan, cells)) {
    const auto& test = comparison.test;
    tests.add({comparison.task.empty() ? "all" : comparison.task, comparison.outcome, comparison.control,
               std::to_string(test.pairs), percent_text(test.mean),
               fmt::format("{} to {}", percent_text(test.t.low), percent_text(test.t.high)),
               fmt::format("{:.3f}", test.t_p), fmt::format("{:.3f}", test.flip_p), percent_text(test.detectable)});
  }
  constexpr size_t kWide = 200;
  const size_t width = std::max(kWide, base::terminal_width());
  std::string text = arms.text(width) + "\n" + tests.text(width);
  if (!has_equal_evaluations(plan, cells)) text += "The runs did not all use the same number of evaluations.\n";
  return text;
}

}  // namespace ks::experiment
