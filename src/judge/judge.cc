#include "judge/judge.h"

#include "base/hash.h"
#include "evaluator/operators.h"
#include "judge/hidden_grid.h"

namespace ks::judge {
namespace {

/// Evaluates one grid, keeps the record and adds the goal's figures to the judgement.
core::Evaluation look_at(const Case& the_case, const evaluator::Request& request, const std::string& label,
                         const goal::Goal& the_goal, const Evaluate& evaluate, Judgement& judgement) {
  core::Evaluation evaluation = evaluate(request);
  const auto path = the_case.folder / fmt::format("{:04}-{}.json", the_case.number, label);
  core::write_evaluation(evaluation, path);
  if (label == "goal") judgement.record = path.string();
  const goal::Figures figures = goal::figures_of(evaluation.summary);
  judgement.decision = evaluation.outcome == "judged" ? the_goal.decide(figures) : goal::Decision::kNotMet;
  if (evaluation.outcome != "judged")
    judgement.figures.push_back(fmt::format("{} grid: {} ({})", label, evaluation.outcome, evaluation.outcome_reason));
  // The hidden grid's scenarios are the judge's secret: only which comparison failed is told.
  for (const auto& line : the_goal.explain(figures))
    judgement.figures.push_back(label == "goal" ? line : label + " grid: " + line);
  return evaluation;
}

evaluator::Request hidden_request(const Case& the_case) {
  const auto the_operator = evaluator::find_operator(the_case.request.operator_name);
  const core::Grid grid = evaluator::load_grid(the_operator, the_case.request.grid);
  const auto path = the_case.folder / "hidden.tsv";
  base::write_file_atomically(path,
                              hidden_grid_text(grid, the_case.request.filter, read_vary_rules(the_operator.folder),
                                               hidden_seed(the_case.folder), the_case.hidden_scenarios));
  evaluator::Request request = the_case.request;
  request.grid = path.string();
  request.filter.clear();
  return request;
}

}  // namespace

uint64_t hidden_seed(const base::fs::path& judge_folder) {
  const auto path = judge_folder / "seed";
  if (!base::fs::exists(path)) base::write_file_atomically(path, std::to_string(base::secret_seed()) + "\n");
  try {
    return std::stoull(base::read_file(path));
  } catch (const std::logic_error&) {
    throw Error("{}: not a seed; remove the file, and a new one is drawn", path.string());
  }
}

Judgement judge(const Case& the_case, const Evaluate& evaluate) {
  const goal::Goal the_goal(the_case.goal);
  Judgement judgement;
  try {
    judgement.evaluation = look_at(the_case, the_case.request, "goal", the_goal, evaluate, judgement);
    if (!the_case.grid_hash.empty() && judgement.evaluation->grid_hash != the_case.grid_hash) {
      judgement.decision = goal::Decision::kUndecided;
      judgement.reason = fmt::format("the grid \"{}\" is not the one that this run began with", the_case.request.grid);
      return judgement;
    }
    // The hidden grid costs time: only what meets the goal in the open is looked at there.
    if (judgement.decision != goal::Decision::kMet || the_case.hidden_scenarios <= 0) return judgement;
    judgement.hidden = look_at(the_case, hidden_request(the_case), "hidden", the_goal, evaluate, judgement);
  } catch (const Error& e) {
    judgement.decision = goal::Decision::kUndecided;
    judgement.reason = e.what();
  }
  return judgement;
}

std::string refusal_text(const Judgement& judgement, const std::string& goal, const std::string& question) {
  std::string text = fmt::format("The goal ({}) is {} by a fresh evaluation of the files as they lie.\n", goal,
                                 judgement.decision == goal::Decision::kUndecided ? "undecided" : "not met");
  if (!judgement.reason.empty()) text += judgement.reason + "\n";
  for (const auto& line : judgement.figures) text += line + "\n";
  if (judgement.evaluation) {
    // Scenarios that are not correct are facts too, the first few by name.
    int shown = 0;
    for (const auto& result : judgement.evaluation->scenarios)
      if (result.candidate.verdict != core::Verdict::kCorrect && shown++ < 3)
        text += fmt::format("{}/{}: {}{}\n", result.category, result.name, core::verdict_name(result.candidate.verdict),
                            result.candidate.reason.empty() ? "" : ", " + result.candidate.reason);
  }
  if (!question.empty()) text += "\n" + question + "\n";
  return text;
}

}  // namespace ks::judge
