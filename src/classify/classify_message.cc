// Acts of a message, sentence by sentence.
#include <algorithm>
#include <cctype>

#include "classify/classify.h"
#include "classify/patterns.h"

namespace ks::classify {
namespace {

struct ActPattern {
  Act act = Act::kDirective;
  std::string_view pattern;
};

// clang-format off
constexpr std::string_view kVerbs =
    "add|analyse|analyze|apply|ask|avoid|benchmark|build|change|check|clean|commit|compare|compute|continue|copy|create|"
    "delete|describe|disable|document|do|drop|dump|enable|ensure|evaluate|explain|explore|extend|find|finish|fix|focus|"
    "follow|get|give|go|handle|ignore|implement|improve|include|increase|inspect|install|investigate|keep|launch|list|"
    "look|make|measure|merge|move|optimise|optimize|plot|prepare|print|prioritise|prioritize|profile|push|put|read|rebuild|"
    "record|redo|reduce|refactor|remember|remove|rename|repeat|replace|report|reproduce|rerun|research|restart|restore|"
    "resume|return|revert|review|rewrite|run|save|search|see|send|set|show|split|start|stay|stop|store|summarise|summarize|"
    "switch|take|tell|test|think|try|tune|turn|undo|update|use|validate|verify|wait|work|write";

constexpr ActPattern kActPatterns[] = {
    {Act::kCorrection, "^ no|nope|wrong|incorrect"},
    {Act::kCorrection, "that|this|it is|was|'s|isn't|wasn't not|wrong|incorrect|false|what"},
    {Act::kCorrection, "that's|it's|this|that|isn't not|wrong|incorrect|false"},
    {Act::kCorrection, "that|this isn't|wasn't"},
    {Act::kCorrection, "you misread|misunderstood|misunderstand|forgot|missed|ignored|skipped|confuse*"},
    {Act::kCorrection, "you are|were wrong|mistaken|confusing|measuring|comparing|looking"},
    {Act::kCorrection, "^ actually"},
    {Act::kCorrection, "i said|meant|asked|told|already|never"},
    {Act::kCorrection, "not what|the i|one|right|same"},
    {Act::kCorrection, "instead of"},
    {Act::kCorrection, "^ .. but|however that|this|it|you .. not|never|wrong|only|without|still|doesn't|isn't|didn't"},
    {Act::kCorrection, "^ .. still wrong|broken|failing|fails|slower"},
    {Act::kCorrection, "really ?"},
    {Act::kCorrection, ", right|no|correct ?"},
    {Act::kDirective, "please|pls|kindly"},
    {Act::kDirective, "let|lets us|'s|s"},
    {Act::kDirective, "lets|let's"},
    {Act::kDirective, "you|we should|must|need|ought|have|shouldn't|mustn't"},
    {Act::kDirective, "i need|want|would|'d|like you|it|this|to like|to|you"},
    {Act::kDirective, "i want|need you to"},
    {Act::kDirective, "go ahead|on|back|with"},
    {Act::kDirective, "make|be sure"},
    {Act::kDirective, "^ don't|never|do not|never"},
    {Act::kDirective, "^ don't|never"},
    {Act::kDirective, "no|any more|further need|changes|edits|commits"},
    {Act::kGoal, "the|our|my goal|target|aim|objective is|remains|stays|:"},
    {Act::kGoal, "^ goal|target|aim|objective"},
    {Act::kGoal, "at least|most #"},
    {Act::kGoal, "until|reach|reaches|reached|hit|hits|beat|beats|exceed|exceeds|above|over|match|matches .. parity|fa3|fa4|baseline|reference|cudnn|#|everywhere|goal|target"},
    {Act::kGoal, "geomean|speedup|ratio|parity|worst .. above|over|below|under|least|> #"},
    {Act::kGoal, "faster|better|quicker than .. on|everywhere|baseline|fa3|fa4|cudnn|reference"},
    {Act::kGoal, "i want|need|would|'d .. kernel|it|this|version .. faster|beats|reaches|parity"},
    {Act::kApproval, "^ good|great|nice|excellent|perfect|agreed|yes|yep|ok|okay|sure|fine|awesome|cool|wonderful|thanks|thank|lgtm|correct|exactly|right"},
    {Act::kApproval, "looks|sounds|seems good|right|great|fine|ok|correct|reasonable"},
    {Act::kApproval, "ship|merge|submit it"},
    {Act::kApproval, "^ go on|ahead"},
    {Act::kApproval, "well done"},
    {Act::kApproval, "i agree|like|approve"},
};

constexpr std::string_view kQuestionPatterns[] = {
    "?",
    "^ what|why|which|who|whom|whose|where|when|how",
    "^ is|are|was|were|does|do|did|has|have|can|could|will|would|should|isn't|aren't|doesn't it|we|you|the|this|that|there|they|your|our|these|those|any|i|all",
    "i wonder|curious",
    "any idea|thoughts|guess|reason",
    "not clear|sure to|what|why|how|whether|if",
    "^ and|but|so what|why|which|where|how|when|who",
    "tell me what|why|how|which|whether|where",
};

// An order that is put as a question …
constexpr std::string_view kDisguised[] = {
    "^ can|could|would|will you|we",
    "why not|don't",
    "why don't|not",
    "how|what about",
    "shouldn't|should we|you|it",
    "would|could it|you be|mind",
    "have|did you tried|try|considered|consider|thought",
    "would it be|make|help worth|better|sense|if",
    "what if you|we",
};
// … unless it asks to be told something.
constexpr std::string_view kAsksToBeTold[] = {
    "can|could|would|will you tell|explain|show|say|describe|clarify|remind",
    "should i|it have|be",
    "what would|about the|it",
};
// clang-format on

bool any_of(const auto& patterns, const std::vector<std::string>& words) {
  return std::any_of(std::begin(patterns), std::end(patterns),
                     [&](const auto& pattern) { return !find_pattern(pattern, words).empty(); });
}

bool begins_with_verb(const std::vector<std::string>& words) {
  static const std::string direct = "^ " + std::string(kVerbs);
  static const std::string after =
      "^ then|now|next|just|so|also|first|ok|okay|and|yes|no|instead|finally|again " + std::string(kVerbs);
  static const std::string comma = "^ _ , " + std::string(kVerbs);
  static const std::string second = ", then|and|now " + std::string(kVerbs);
  return !find_pattern(direct, words).empty() || !find_pattern(after, words).empty() ||
         !find_pattern(comma, words).empty() || !find_pattern(second, words).empty();
}

bool has_contrast(const std::vector<std::string>& words) {
  return !find_pattern("but|however|although|except|yet", words).empty();
}

size_t word_count(const std::vector<std::string>& words) {
  return static_cast<size_t>(std::count_if(words.begin(), words.end(), [](const auto& word) {
    return word != "^" && word != "$" && word != "," && word != "?" && word != "!";
  }));
}

constexpr size_t kLongestApproval = 8;  // words; longer sentences that begin so say something else

Sentence label(const std::string& text) {
  Sentence sentence{text, {}, false};
  const auto words = words_of(text);
  for (const ActPattern& rule : kActPatterns) {
    if (find_pattern(rule.pattern, words).empty()) continue;
    if (rule.act == Act::kApproval && word_count(words) > kLongestApproval) continue;
    sentence.acts.insert(rule.act);
  }
  const bool is_question = any_of(kQuestionPatterns, words);
  if (is_question) sentence.acts.insert(Act::kQuestion);
  if (begins_with_verb(words) && find_pattern("?", words).empty() && !any_of(kAsksToBeTold, words)) {
    // "Do we …", "Have you …" without a question mark are questions; a bare verb is an order.
    if (!is_question || find_pattern("^ do|does|did|have|has we|you|they|the|these|all", words).empty())
      sentence.acts.insert(Act::kDirective);
  }
  if (is_question && any_of(kDisguised, words) && !any_of(kAsksToBeTold, words)) {
    sentence.is_disguised_order = true;
    sentence.acts.insert(Act::kDirective);
    sentence.acts.erase(Act::kQuestion);
  } else if (is_question && !find_pattern("?", words).empty() && find_pattern("please|pls", words).empty() &&
             !begins_with_verb(words)) {
    sentence.acts.erase(Act::kDirective);
    sentence.acts.erase(Act::kApproval);
    sentence.acts.erase(Act::kGoal);
  }
  if (sentence.acts.contains(Act::kApproval) && has_contrast(words)) sentence.acts.insert(Act::kCorrection);
  if (sentence.acts.contains(Act::kCorrection)) {
    if (!has_contrast(words)) sentence.acts.erase(Act::kApproval);
    if (!find_pattern("^ no question|need|problem|worries", words).empty()) sentence.acts.erase(Act::kCorrection);
  }
  if (!find_pattern("^ good|great|nice question|point", words).empty()) sentence.acts = {Act::kApproval};
  if (word_count(words) <= 4 && !find_pattern("go on|ahead $", words).empty()) sentence.acts = {Act::kApproval};
  return sentence;
}

std::vector<std::string> split_sentences(const std::string& text) {
  std::vector<std::string> sentences;
  std::string current;
  const auto flush = [&] {
    if (std::any_of(current.begin(), current.end(), [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 128;
        }))
      sentences.push_back(current);
    current.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      flush();
      continue;
    }
    current += c;
    const bool at_end = i + 1 == text.size() || std::isspace(static_cast<unsigned char>(text[i + 1])) != 0;
    if (c == '?' || c == ';' || ((c == '.' || c == '!') && at_end)) flush();
  }
  flush();
  return sentences;
}

/// Lines that a program printed: a prompt, a stack trace, a table, a long run without words.
bool is_pasted(const std::string& line) {
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return false;
  if (line[begin] == '>' || line[begin] == '$' || line[begin] == '|' || line[begin] == '#') return true;
  const auto symbols = std::count_if(line.begin(), line.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) == 0 && c != ' ' && static_cast<unsigned char>(c) < 128;
  });
  return line.size() > 20 && static_cast<size_t>(symbols) * 2 > line.size();
}

}  // namespace

const char* act_name(Act act) {
  switch (act) {
    case Act::kCorrection:
      return "correction";
    case Act::kDirective:
      return "directive";
    case Act::kGoal:
      return "goal";
    case Act::kQuestion:
      return "question";
    case Act::kApproval:
      break;
  }
  return "approval";
}

std::string without_quoted(std::string_view text) {
  std::string out, line;
  bool in_block = false;
  const auto end_line = [&] {
    if (line.find("```") != std::string::npos) {
      in_block = !in_block;
    } else if (!in_block && !is_pasted(line)) {
      out += line + "\n";
    }
    line.clear();
  };
  for (const char c : text) {
    if (c == '\n') {
      end_line();
    } else {
      line += c;
    }
  }
  end_line();
  std::string plain;
  for (size_t i = 0; i < out.size();) {
    const bool is_link = out.compare(i, 7, "http://") == 0 || out.compare(i, 8, "https://") == 0;
    const size_t close = out[i] == '`' ? out.find('`', i + 1) : std::string::npos;
    if (close != std::string::npos) {
      plain += "it";
      i = close + 1;
    } else if (is_link) {
      while (i < out.size() && std::isspace(static_cast<unsigned char>(out[i])) == 0) ++i;
    } else {
      plain += out[i++];
    }
  }
  return plain;
}

MessageLabels classify_message(std::string_view text) {
  MessageLabels labels;
  for (const auto& text_of_sentence : split_sentences(without_quoted(text))) {
    labels.sentences.push_back(label(text_of_sentence));
    const Sentence& sentence = labels.sentences.back();
    labels.acts.insert(sentence.acts.begin(), sentence.acts.end());
    labels.has_disguised_order = labels.has_disguised_order || sentence.is_disguised_order;
  }
  for (const Act act : kActs) {
    if (!labels.acts.contains(act)) continue;
    labels.main_act = act;
    break;
  }
  return labels;
}

}  // namespace ks::classify
