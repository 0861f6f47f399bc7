// Goals on an evaluation: the figures that goal expressions speak of.
#pragma once

#include <string>

#include "core/record.h"

namespace ks::cli {

/// Throws ks::Error naming the column and the nearest known word if the expression is malformed.
void check_goal(const std::string& expression);

/// Undecided is not met.
bool goal_is_met(const std::string& expression, const core::Evaluation& evaluation);

}  // namespace ks::cli
