// See human_classifier.h. Categories are asked of messages that are questions only.
#include "cli/human_classifier.h"

#include "classify/classify.h"

namespace ks::cli {

trace::HumanClassifier human_classifier() {
  return [](const std::string& text) {
    trace::HumanLabels labels;
    const auto message = classify::classify_message(text);
    for (const classify::Act act : message.acts) labels.classes.emplace_back(classify::act_name(act));
    if (!message.acts.contains(classify::Act::kQuestion)) return labels;
    for (const auto& score : classify::classify_question(text)) labels.categories.push_back(score.category);
    return labels;
  };
}

}  // namespace ks::cli
