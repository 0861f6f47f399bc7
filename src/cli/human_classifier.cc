// See human_classifier.h.
#include "cli/human_classifier.h"

namespace ks::cli {

trace::HumanClassifier human_classifier() { return {}; }

}  // namespace ks::cli
