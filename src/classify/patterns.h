// Patterns over words, for the two classifiers. A pattern is a row of parts, one word each: a word, alternatives a|b, a
// beginning wo*, "_" any word, ".." up to four words, "^" the beginning of the sentence, "$" its end, "#" a number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ks::classify {

/// The words of one sentence in lower case, with "^" before them and "$" after; "?" is a word of its own.
std::vector<std::string> words_of(std::string_view sentence);

/// The words that the pattern matched, or "" where it matched nowhere.
std::string find_pattern(std::string_view pattern, const std::vector<std::string>& words);

}  // namespace ks::classify
