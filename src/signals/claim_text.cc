#include "signals/claim_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <utility>

namespace ks::signals {
namespace {

/// A claim and one phrase that makes it, lower case.
struct Phrase {
  std::string_view claim, words;
};

constexpr std::array kPhrases = std::to_array<Phrase>({
    {"done", "goal achieved"},
    {"done", "goal is achieved"},
    {"done", "goal has been achieved"},
    {"done", "goal is reached"},
    {"done", "goal reached"},
    {"done", "goal is met"},
    {"done", "goal met"},
    {"done", "target is met"},
    {"done", "target reached"},
    {"done", "task is complete"},
    {"done", "task complete"},
    {"done", "work is complete"},
    {"done", "work is done"},
    {"done", "work is finished"},
    {"done", "i am done"},
    {"done", "i'm done"},
    {"done", "all done"},
    {"done", "is now complete"},
    {"done", "nothing left to"},
    {"done", "nothing more to do"},
    {"done", "successfully completed"},
    {"done", "implementation is complete"},
    {"improved", "improved from"},
    {"improved", "improved by"},
    {"improved", "improvement of"},
    {"improved", "faster than before"},
    {"improved", "speedup of"},
    {"improved", "speed-up of"},
    {"improved", "% faster"},
    {"improved", "x faster"},
    {"improved", "improves the"},
    {"improved", "a clear win"},
    {"improved", "gained"},
    {"improved", "is an improvement"},
    {"limit", "ceiling"},
    {"limit", "hardware limit"},
    {"limit", "theoretical limit"},
    {"limit", "physical limit"},
    {"limit", "fundamental limit"},
    {"limit", "fundamentally limited"},
    {"limit", "is as fast as"},
    {"limit", "cannot go faster"},
    {"limit", "can't go faster"},
    {"limit", "at the limit"},
    {"limit", "no further improvement"},
    {"limit", "no more performance"},
    {"limit", "near-optimal"},
    {"limit", "near optimal"},
    {"limit", "close to peak"},
    {"limit", "saturated"},
    {"limit", "nothing more is possible"},
    {"limit", "reached the limit"},
    {"limit", "practical limit"},
    {"infeasible", "cannot be done"},
    {"infeasible", "can't be done"},
    {"infeasible", "is not possible"},
    {"infeasible", "isn't possible"},
    {"infeasible", "impossible"},
    {"infeasible", "infeasible"},
    {"infeasible", "not feasible"},
    {"infeasible", "there is no way"},
    {"cause", "because"},
    {"cause", "is caused by"},
    {"cause", "due to"},
    {"cause", "the reason is"},
    {"cause", "root cause"},
    {"cause", "the bottleneck is"},
    {"cause", "explained by"},
    {"cause", "is limited by"},
    {"tradeoff", "trade-off"},
    {"tradeoff", "tradeoff"},
    {"tradeoff", "at the cost of"},
    {"tradeoff", "at the expense of"},
    {"tradeoff", "sacrific"},
    {"no_effect", "no effect"},
    {"no_effect", "no measurable"},
    {"no_effect", "makes no difference"},
    {"no_effect", "made no difference"},
    {"no_effect", "does not matter"},
    {"no_effect", "doesn't matter"},
    {"no_effect", "no impact"},
    {"no_effect", "within noise"},
    {"enough", "good enough"},
    {"enough", "close enough"},
    {"enough", "acceptable"},
    {"enough", "satisfactory"},
    {"enough", "sufficient for"},
    {"unobservable", "cannot be measured"},
    {"unobservable", "can't be measured"},
    {"unobservable", "cannot measure"},
    {"unobservable", "can't measure"},
    {"unobservable", "no way to measure"},
    {"unobservable", "cannot profile"},
    {"unobservable", "can't profile"},
    {"unobservable", "profiler is not available"},
});

/// What makes a sentence no claim.
constexpr std::array<std::string_view, 20> kOpen = {
    "let me",  "i will",  "i'll",  "if ",     "whether", "to check",   "going to", "might ",    "may be", "could be",
    "not yet", "perhaps", "maybe", "want to", "need to", "should be ", "until ",   "would be ", "let's ", "try to"};

constexpr std::array<std::string_view, 12> kAsking = {"should i",      "shall i",    "would you like",  "do you want",
                                                      "let me know",   "want me to", "which would you", "which do you",
                                                      "do you prefer", "your call",  "ok to proceed",   "may i"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool contains_any(const std::string& text, std::span<const std::string_view> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](std::string_view phrase) { return text.find(phrase) != std::string::npos; });
}

/// Sentences end at . ! ? followed by a space or the end, and at line ends.
template <typename Use>
void for_each_sentence(std::string_view text, const Use& use) {
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool last = i + 1 == text.size();
    const bool ends =
        c == '\n' || ((c == '.' || c == '!' || c == '?') && (last || text[i + 1] == ' ' || text[i + 1] == '\n'));
    if (!ends && !last) continue;
    std::string_view sentence = text.substr(start, i + 1 - start);
    while (!sentence.empty() && std::isspace(static_cast<unsigned char>(sentence.front())) != 0)
      sentence.remove_prefix(1);
    while (!sentence.empty() && std::isspace(static_cast<unsigned char>(sentence.back())) != 0)
      sentence.remove_suffix(1);
    if (!sentence.empty() && !use(sentence)) return;
    start = i + 1;
  }
}

bool is_open(std::string_view sentence, const std::string& lowered) {
  return sentence.back() == '?' || contains_any(lowered, kOpen);
}

}  // namespace

std::set<std::string> claims_in(std::string_view text) {
  std::set<std::string> claims;
  for_each_sentence(text, [&](std::string_view sentence) {
    const std::string lowered = lower(sentence);
    if (is_open(sentence, lowered)) return true;
    for (const auto& [claim, words] : kPhrases)
      if (lowered.find(words) != std::string::npos) claims.emplace(claim);
    return true;
  });
  return claims;
}

std::string claiming_sentence(std::string_view text, const std::string& claim) {
  std::string result;
  for_each_sentence(text, [&](std::string_view sentence) {
    const std::string lowered = lower(sentence);
    if (is_open(sentence, lowered)) return true;
    for (const auto& phrase : kPhrases)
      if (phrase.claim == claim && lowered.find(phrase.words) != std::string::npos) result = sentence;
    return result.empty();
  });
  return result;
}

bool has_number(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

bool asks_permission(std::string_view text) {
  std::string last;
  for_each_sentence(text, [&](std::string_view sentence) {
    last = lower(sentence);
    return true;
  });
  return contains_any(last, kAsking);
}

}  // namespace ks::signals
