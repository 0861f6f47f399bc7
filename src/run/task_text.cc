// A task as a file's text again: for runs that an experiment makes.
#include "base/json.h"
#include "run/task.h"

namespace ks::run {
namespace {

/// A basic string of TOML.
std::string quoted(const std::string& text) {
  return Json(text).dump();
}

}  // namespace

std::string task_text(const Task& task) {
  std::string text;
  const auto word = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += fmt::format("{} = {}\n", key, quoted(value));
  };
  word("name", task.name);
  word("operator", task.operator_name);
  word("grid", task.grid);
  word("filter", task.filter);
  word("device", task.device);
  word("candidate", task.candidate);
  word("goal", task.goal);
  word("agent", task.agent);
  word("model", task.model);
  word("questioner", task.questioner);
  word("questions_file", task.questions_file);
  word("instructions", task.instructions);
  text +=
      fmt::format("seed = {}\nthreads = {}\nquestion_seconds = {}\n", task.seed, task.threads, task.question_seconds);
  if (!task.baselines.empty()) text += fmt::format("baselines = {}\n", Json(task.baselines).dump());
  text += fmt::format("\n[budget]\nminutes = {}\nevaluations = {}\ntokens = {}\ncost_usd = {}\ngpu_seconds = {}\n",
                      task.budget.minutes, task.budget.evaluations, task.budget.tokens, task.budget.cost_usd,
                      task.budget.gpu_seconds);
  text += fmt::format("\n[evaluation]\nseconds = {}\n", task.evaluation_seconds);
  text += fmt::format("\n[judge]\nseconds = {}\nhidden_scenarios = {}\n", task.judge_seconds, task.hidden_scenarios);
  const auto& model = task.questioner_model;
  if (model.url.empty()) return text;
  return text + fmt::format("\n[questioner_model]\nurl = {}\nname = {}\nkey_env = {}\nseconds = {}\n",
                            quoted(model.url), quoted(model.name), quoted(model.key_env), model.seconds);
}

}  // namespace ks::run
