#include "cli/goal_figures.h"

#include "goal/goal.h"

namespace ks::cli {

void check_goal(const std::string& expression) {
  goal::Goal parsed(expression);
}

bool goal_is_met(const std::string& expression, const core::Evaluation& evaluation) {
  return goal::Goal(expression).decide(goal::figures_of(evaluation.summary)) == goal::Decision::kMet;
}

}  // namespace ks::cli
