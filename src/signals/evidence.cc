#include "signals/evidence.h"

#include <fmt/format.h>

#include <algorithm>

namespace ks::signals {

void Evidence::add(const Evidence& other) {
  for (const auto& fact : other.facts) {
    const bool known = std::any_of(facts.begin(), facts.end(), [&](const Fact& f) { return f.text == fact.text; });
    if (!known) facts.push_back(fact);
  }
  slots.insert(other.slots.begin(), other.slots.end());
  if (focus.empty()) focus = other.focus;
}

std::string fact_line(const Fact& fact) {
  return fmt::format("{} ({})", fact.text, fact.origin);
}

}  // namespace ks::signals
