// The classes of a person's messages for `trace stats`, from src/classify.
#pragma once

#include "trace/trace_stats.h"

namespace ks::cli {
trace::HumanClassifier human_classifier();
}  // namespace ks::cli
