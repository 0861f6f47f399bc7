#include "steering/lint.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

namespace ks::steering {
namespace {

constexpr std::string_view kSentenceStart = "^";
constexpr std::string_view kNameMark = "{}";  // stands for a slot, a quotation or a name
constexpr int kLongestGap = 4;                // words that ".." may stand for
constexpr size_t kLongestJudged = 20000;      // characters; a longer text is no message

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// Replaces slots, quotations and names by a mark that no pattern matches.
std::string masked(std::string_view text, const std::vector<std::string>& names) {
  std::string out;
  text = text.substr(0, kLongestJudged);
  const size_t last_brace = text.rfind('}'), last_quote = text.rfind('"'), last_tick = text.rfind('`');
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = std::string::npos;
    if (text[i] == '{' && last_brace != std::string::npos && i < last_brace) end = text.find('}', i);
    if (text[i] == '"' && i < last_quote) end = text.find('"', i + 1);
    if (text[i] == '`' && i < last_tick) end = text.find('`', i + 1);
    if (end == std::string::npos) {
      out += text[i];
      continue;
    }
    out += kNameMark;
    i = end;
  }
  for (const std::string& name : names) {
    if (name.empty()) continue;
    for (size_t at = out.find(name); at != std::string::npos; at = out.find(name, at + 1)) {
      const bool begins = at == 0 || !is_word_char(out[at - 1]);
      const bool ends = at + name.size() >= out.size() || !is_word_char(out[at + name.size()]);
      if (begins && ends) out.replace(at, name.size(), kNameMark);
    }
  }
  return out;
}

/// After these a clause begins in which a bare verb is an order.
bool opens_clause(const std::string& word) {
  static const std::set<std::string> openers = {"then", "now", "next", "just", "so", "also", "but"};
  return openers.contains(word);
}

void add_word(std::vector<std::string>& words, std::string word) {
  if (word.ends_with("n't")) {
    words.push_back(word.substr(0, word.size() - 3));
    words.push_back("not");
    return;
  }
  const size_t apostrophe = word.find('\'');
  if (apostrophe != std::string::npos) {
    words.push_back(word.substr(0, apostrophe));
    word = word.substr(apostrophe + 1);
    if (word.empty()) return;
  }
  words.push_back(std::move(word));
}

/// The words of a text with "^" where a sentence or clause begins and "?" for a question mark.
std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words = {std::string(kSentenceStart)};
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (is_word_char(c)) {
      size_t end = i;
      while (end < text.size() &&
             (is_word_char(text[end]) || (text[end] == '\'' && end + 1 < text.size() && is_word_char(text[end + 1])) ||
              (text[end] == '.' && std::isdigit(static_cast<unsigned char>(text[end - 1])) != 0 &&
               end + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[end + 1])) != 0)))
        ++end;
      std::string word = text.substr(i, end - i);
      for (char& letter : word) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      const bool begins_clause = words.back() == kSentenceStart && opens_clause(word);
      add_word(words, std::move(word));
      if (begins_clause) words.emplace_back(kSentenceStart);
      i = end;
      continue;
    }
    if (text.compare(i, kNameMark.size(), kNameMark) == 0) {
      words.emplace_back(kNameMark);
      i += kNameMark.size();
      continue;
    }
    if (c == '?') words.emplace_back("?");
    const bool ends_sentence =
        c == '?' || c == '!' || c == ';' || c == ':' || c == '\n' ||
        (c == '.' && (i + 1 == text.size() || std::isspace(static_cast<unsigned char>(text[i + 1])) != 0));
    if (ends_sentence) words.emplace_back(kSentenceStart);
    if (c == ',' && words.back() != kSentenceStart) words.emplace_back(",");
    ++i;
  }
  return words;
}

bool is_number(const std::string& word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0 &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; });
}

bool matches_part(std::string_view part, const std::string& word) {
  if (part == "_") return is_word_char(word[0]);
  if (part == "#") return is_number(word);
  if (part == kSentenceStart || part == "?") return word == part;
  while (true) {
    const size_t bar = part.find('|');
    const std::string_view one = part.substr(0, bar);
    if (one.ends_with('*') ? word.starts_with(one.substr(0, one.size() - 1)) : word == one) return true;
    if (one == "#" && is_number(word)) return true;
    if (bar == std::string_view::npos) return false;
    part.remove_prefix(bar + 1);
  }
}

/// Where the pattern ends if it matches from `at`, else 0.
size_t match_from(std::string_view pattern, const std::vector<std::string>& words, size_t at) {
  if (pattern.empty()) return at;
  const size_t space = pattern.find(' ');
  const std::string_view part = pattern.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? std::string_view() : pattern.substr(space + 1);
  if (part == "..") {
    for (int gap = 0; gap <= kLongestGap && at + gap <= words.size(); ++gap) {
      if (const size_t end = match_from(rest, words, at + gap); end != 0) return end;
      if (at + gap < words.size() && (words[at + gap] == kSentenceStart || words[at + gap] == "?")) return 0;
    }
    return 0;
  }
  if (at >= words.size() || !matches_part(part, words[at])) return 0;
  return match_from(rest, words, at + 1);
}

std::string join_words(const std::vector<std::string>& words, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    if (words[i] == kSentenceStart) continue;
    if (!text.empty()) text += ' ';
    text += words[i];
  }
  return text;
}

/// Words that say little, and endings that change little, for the comparison of two texts.
constexpr std::array<std::string_view, 92> kSmallWords = {
    "the",   "and",   "that",  "this",  "what",  "which", "how",   "who",    "whom",   "whose", "when",    "where",
    "why",   "is",    "are",   "was",   "were",  "be",    "been",  "do",     "does",   "did",   "has",     "have",
    "had",   "will",  "would", "can",   "could", "may",   "might", "should", "must",   "of",    "in",      "on",
    "at",    "to",    "for",   "from",  "by",    "with",  "as",    "it",     "its",    "they",  "them",    "their",
    "there", "here",  "we",    "us",    "our",   "you",   "your",  "one",    "ones",   "any",   "some",    "all",
    "each",  "every", "other", "same",  "than",  "then",  "if",    "or",     "not",    "no",    "so",      "too",
    "up",    "out",   "off",   "only",  "just",  "yet",   "ever",  "now",    "before", "after", "between", "behind",
    "into",  "about", "over",  "under", "much",  "many",  "once",  "still"};

std::string stem(std::string word) {
  for (const char* ending : {"ing", "ed", "es", "s"}) {
    const std::string_view end = ending;
    if (word.size() > end.size() + 3 && word.ends_with(end)) return word.substr(0, word.size() - end.size());
  }
  return word;
}

bool is_plain_english(std::string_view text) {
  static const std::set<std::string> common = {"the",  "is",   "your", "you",   "one",  "can",  "if",   "not",
                                               "has",  "this", "by",   "be",    "on",   "are",  "what", "which",
                                               "how",  "who",  "of",   "to",    "in",   "a",    "and",  "that",
                                               "does", "do",   "was",  "where", "when", "with", "for",  "it"};
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= 32 && c < 127; })) return false;
  const auto words = split_words(std::string(text));
  return std::count_if(words.begin(), words.end(), [&](const auto& word) { return common.contains(word); }) >= 2;
}

}  // namespace

const char* leak_name(Leak leak) {
  switch (leak) {
    case Leak::kConstruct:
      return "construct";
    case Leak::kTechnique:
      return "technique";
    case Leak::kNumber:
      return "number to try";
    case Leak::kSuggestion:
      return "suggestion";
    case Leak::kOrder:
      return "order";
    case Leak::kAnswer:
      return "answer";
    case Leak::kPraise:
      break;
  }
  return "praise";
}

std::string LintFinding::text() const {
  return fmt::format("{} (\"{}\")", what, words);
}

std::vector<LintFinding> lint_leaks(std::string_view text, const std::vector<std::string>& names) {
  std::vector<LintFinding> findings;
  for (const std::string_view neutral : kNeutralTexts)
    if (text == neutral) return findings;
  const auto words = split_words(masked(text, names));
  for (const LintPattern& rule : kLintPatterns) {
    for (size_t at = 0; at < words.size(); ++at) {
      const size_t end = match_from(rule.pattern, words, at);
      if (end == 0) continue;
      findings.push_back({leak_name(rule.leak), join_words(words, at, end)});
      break;
    }
  }
  return findings;
}

std::vector<LintFinding> lint_fact(std::string_view text, const std::vector<std::string>& names) {
  std::vector<LintFinding> findings = lint_leaks(text, names);
  std::erase_if(findings, [](const LintFinding& finding) {
    return finding.what == leak_name(Leak::kConstruct) || finding.what == leak_name(Leak::kNumber);
  });
  return findings;
}

std::vector<LintFinding> lint_question(std::string_view text, const std::vector<std::string>& names) {
  std::vector<LintFinding> findings = lint_leaks(text, names);
  const std::string own = masked(text, names);
  const auto marks = std::count(own.begin(), own.end(), '?');
  if (marks == 0) findings.push_back({"shape", "no question mark"});
  if (marks > 2) findings.push_back({"shape", fmt::format("{} questions; two are the most", marks)});
  if (text.size() > kLongestQuestion)
    findings.push_back({"shape", fmt::format("{} characters; {} are the most", text.size(), kLongestQuestion)});
  if (!is_plain_english(own)) findings.push_back({"language", "plain English in ASCII is expected"});
  return findings;
}

std::set<std::string> content_words(std::string_view text) {
  std::set<std::string> words;
  for (const std::string& word : split_words(masked(text, {}))) {
    if (word.size() < 3 || !is_word_char(word[0])) continue;
    if (std::find(kSmallWords.begin(), kSmallWords.end(), word) == kSmallWords.end()) words.insert(stem(word));
  }
  return words;
}

double content_overlap(std::string_view left, std::string_view right) {
  const auto a = content_words(left), b = content_words(right);
  size_t shared = 0;
  for (const std::string& word : a) shared += b.contains(word) ? 1 : 0;
  const size_t all = a.size() + b.size() - shared;
  return all == 0 ? 0 : static_cast<double>(shared) / static_cast<double>(all);
}

}  // namespace ks::steering
