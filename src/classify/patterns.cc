#include "classify/patterns.h"

#include <algorithm>
#include <cctype>

namespace ks::classify {
namespace {

constexpr int kLongestGap = 4;

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 128;
}

bool matches_part(std::string_view part, const std::string& word) {
  if (part == "_") return word != "^" && word != "$";
  while (true) {
    const size_t bar = part.find('|');
    const std::string_view one = part.substr(0, bar);
    if (one == "#"           ? std::isdigit(static_cast<unsigned char>(word[0])) != 0
        : one.ends_with('*') ? word.starts_with(one.substr(0, one.size() - 1))
                             : word == one)
      return true;
    if (bar == std::string_view::npos) return false;
    part.remove_prefix(bar + 1);
  }
}

size_t match_from(std::string_view pattern, const std::vector<std::string>& words, size_t at) {
  if (pattern.empty()) return at;
  const size_t space = pattern.find(' ');
  const std::string_view part = pattern.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? std::string_view() : pattern.substr(space + 1);
  if (part == "..") {
    for (int gap = 0; gap <= kLongestGap && at + gap < words.size(); ++gap)
      if (const size_t end = match_from(rest, words, at + gap); end != 0) return end;
    return 0;
  }
  if (at >= words.size() || !matches_part(part, words[at])) return 0;
  return match_from(rest, words, at + 1);
}

}  // namespace

std::vector<std::string> words_of(std::string_view sentence) {
  std::vector<std::string> words = {"^"};
  for (size_t i = 0; i < sentence.size();) {
    if (sentence[i] == '?' || sentence[i] == '!' || sentence[i] == ',') words.emplace_back(1, sentence[i]);
    if (sentence[i] == '>' || sentence[i] == '<') words.emplace_back(1, sentence[i]);
    if (!is_letter(sentence[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < sentence.size() &&
           (is_letter(sentence[end]) || (std::string_view("'._").find(sentence[end]) != std::string_view::npos &&
                                         end + 1 < sentence.size() && is_letter(sentence[end + 1]))))
      ++end;
    std::string word(sentence.substr(i, end - i));
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    words.push_back(word);
    i = end;
  }
  words.emplace_back("$");
  return words;
}

std::string find_pattern(std::string_view pattern, const std::vector<std::string>& words) {
  for (size_t at = 0; at < words.size(); ++at) {
    const size_t end = match_from(pattern, words, at);
    if (end == 0) continue;
    std::string text;
    for (size_t i = at; i < end; ++i)
      if (words[i] != "^" && words[i] != "$") text += (text.empty() ? "" : " ") + words[i];
    return text.empty() ? std::string(pattern) : text;
  }
  return "";
}

}  // namespace ks::classify
