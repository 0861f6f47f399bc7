// Claims in what an agent says, where no `claim` event states them: finished, better, a limit, impossible, a cause, a
// trade-off, no effect, good enough, not measurable. By phrases, sentence by sentence; a sentence that asks, or that
// speaks of what is yet to be done, claims nothing.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace ks::signals {

/// Names of claims in a message: "done", "improved", "limit", "infeasible", "cause", "tradeoff", "no_effect", "enough",
/// "unobservable".
std::set<std::string> claims_in(std::string_view text);

/// The first sentence of the text that makes the claim; "" where none does.
std::string claiming_sentence(std::string_view text, const std::string& claim);

/// True where the text carries a number.
bool has_number(std::string_view text);

/// True where the text ends by asking a person to choose or to agree.
bool asks_permission(std::string_view text);

}  // namespace ks::signals
