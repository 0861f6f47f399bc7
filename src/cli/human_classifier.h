// The classes of a person's messages for `trace stats`, from src/classify where it is built in.
#pragma once

#include "trace/trace_stats.h"

namespace ks::cli {
/// Empty where no classifier is built in; the figures by class are then left out.
trace::HumanClassifier human_classifier();
}  // namespace ks::cli
