// See shell_command.h. Two steps: split into words and operators, then group words into programs.
#include "trace/shell_command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <utility>

namespace ks::trace {

namespace {

constexpr int kMaxNesting = 4;  // bash -c "bash -c …"

enum class TokenKind { kWord, kSeparator, kWrite, kIgnoredRedirection, kHereText };

struct Token {
  TokenKind kind;
  std::string text;
};

/// Splits a command; here-documents become tokens of their own behind the word that ends their line.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  std::vector<Token> split() {
    while (at_ < text_.size()) step();
    end_word();
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\n') return newline();
    if (std::isspace(static_cast<unsigned char>(c))) return end_word(), void(++at_);
    if (c == '#' && !in_word_) return skip_comment();
    if (c == '\'' || c == '"') return quoted(c);
    if (c == '\\') return escaped();
    if (c == '$' && peek(1) == '(') return substitution();
    if (c == '<' && peek(1) == '<' && peek(2) != '<') return here_document();
    if (c == '>' || c == '<') return redirection(c);
    if (c == '&' && (peek(1) == '>')) return redirection_of_both();
    if (c == '|' || c == '&' || c == ';' || c == '(' || c == ')') return separator();
    word_ += c;
    in_word_ = true;
    ++at_;
  }

  void end_word() {
    if (!in_word_) return;
    tokens_.push_back({next_word_is_, std::move(word_)});
    next_word_is_ = TokenKind::kWord;
    word_.clear();
    in_word_ = false;
  }

  void separator() {
    end_word();
    tokens_.push_back({TokenKind::kSeparator, std::string(1, peek())});
    while (at_ < text_.size() && (peek() == '|' || peek() == '&' || peek() == ';' || peek() == '(' || peek() == ')'))
      ++at_;
  }

  void newline() {
    end_word();
    ++at_;
    for (const std::string& delimiter : pending_here_) read_here_text(delimiter);
    pending_here_.clear();
    tokens_.push_back({TokenKind::kSeparator, "\n"});
  }

  void skip_comment() {
    while (at_ < text_.size() && peek() != '\n') ++at_;
  }

  void quoted(char quote) {
    in_word_ = true;
    for (++at_; at_ < text_.size() && peek() != quote; ++at_) {
      const bool escapes = quote == '"' && peek() == '\\' && (peek(1) == '"' || peek(1) == '\\' || peek(1) == '$');
      if (escapes) ++at_;
      word_ += peek();
    }
    ++at_;
  }

  void escaped() {
    if (peek(1) != '\n' && at_ + 1 < text_.size()) {
      word_ += peek(1);
      in_word_ = true;
    }
    at_ += 2;
  }

  void substitution() {
    in_word_ = true;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      word_ += peek();
      if (peek() == '(') ++depth;
      if (peek() == ')' && --depth == 0) break;
    }
    ++at_;
  }

  void here_document() {
    end_word();
    at_ += peek(2) == '-' ? 3 : 2;
    while (peek() == ' ') ++at_;
    std::string delimiter;
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(peek())) && peek() != ';' && peek() != '|' &&
           peek() != '>' && peek() != '&' && peek() != ')') {
      if (peek() != '\'' && peek() != '"' && peek() != '\\') delimiter += peek();
      ++at_;
    }
    pending_here_.push_back(delimiter);
  }

  void read_here_text(const std::string& delimiter) {
    std::string text;
    while (at_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      const size_t start = line.find_first_not_of('\t');
      if (start != std::string_view::npos && line.substr(start) == delimiter) break;
      text.append(line).push_back('\n');
    }
    tokens_.push_back({TokenKind::kHereText, std::move(text)});
  }

  void redirection(char direction) {
    const bool has_descriptor = in_word_ && !word_.empty() && std::all_of(word_.begin(), word_.end(), [](char c) {
                                  return std::isdigit(static_cast<unsigned char>(c));
                                });
    const bool is_output = direction == '>' && (!has_descriptor || word_ == "1");
    if (has_descriptor) {
      word_.clear();
      in_word_ = false;
    }
    end_word();
    while (peek() == '>' || peek() == '<' || peek() == '|') ++at_;
    if (peek() == '&') {  // 2>&1
      ++at_;
      while (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '-') ++at_;
      return;
    }
    next_word_is_ = is_output ? TokenKind::kWrite : TokenKind::kIgnoredRedirection;
  }

  void redirection_of_both() {
    end_word();
    at_ += 2;
    if (peek() == '>') ++at_;
    next_word_is_ = TokenKind::kWrite;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  TokenKind next_word_is_ = TokenKind::kWord;
  std::vector<std::string> pending_here_;
  std::vector<Token> tokens_;
};

bool is_assignment(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

/// A program that runs another: how many words of its own stand before that one.
struct Wrapper {
  std::string_view name;
  int operands;                        ///< words after the options that are still its own
  std::string_view options_with_word;  ///< letters of its options that take the next word
};
constexpr std::array<Wrapper, 17> kWrappers = {{{"sudo", 0, "uhgp"},
                                                {"time", 0, "fo"},
                                                {"timeout", 1, "ks"},
                                                {"nice", 0, "n"},
                                                {"nohup", 0, ""},
                                                {"env", 0, "uC"},
                                                {"stdbuf", 0, "ioe"},
                                                {"taskset", 1, ""},
                                                {"numactl", 0, "NmCi"},
                                                {"srun", 0, "nNptcJ"},
                                                {"command", 0, ""},
                                                {"exec", 0, ""},
                                                {"xargs", 0, "nIPLd"},
                                                {"setsid", 0, ""},
                                                {"chrt", 1, ""},
                                                {"ionice", 0, "cn"},
                                                {"unbuffer", 0, ""}}};

std::string base_name(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// Index of the word that names the program, assignments and wrappers passed over.
size_t program_index(const std::vector<std::string>& words) {
  size_t at = 0;
  while (at < words.size()) {
    const std::string name = base_name(words[at]);
    if (is_assignment(words[at]) || name == "then" || name == "do" || name == "else" || name == "if" || name == "!" ||
        name == "{" || name == "while") {
      ++at;
      continue;
    }
    const auto wrapper =
        std::find_if(kWrappers.begin(), kWrappers.end(), [&](const Wrapper& w) { return w.name == name; });
    if (wrapper == kWrappers.end()) break;
    for (++at; at < words.size() && words[at].size() > 1 && words[at][0] == '-'; ++at) {
      const bool takes_word =
          words[at].size() == 2 && wrapper->options_with_word.find(words[at][1]) != std::string::npos;
      if (takes_word) ++at;
    }
    at += static_cast<size_t>(wrapper->operands);
  }
  return std::min(at, words.size());
}

void parse_into(std::string_view command, std::string folder, int nesting, std::vector<ShellProgram>& programs);

/// Turns the words of one simple command into a program, or changes the folder.
void add_program(std::vector<std::string>& words, ShellProgram&& program, std::string& folder, int nesting,
                 std::vector<ShellProgram>& programs) {
  const size_t at = program_index(words);
  if (at >= words.size()) return;
  program.name = base_name(words[at]);
  program.args.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
  program.folder = folder;
  if (program.name == "cd" || program.name == "pushd") {
    if (!program.args.empty()) folder = resolve_path(folder, program.args[0]);
    return;
  }
  const bool is_shell = program.name == "bash" || program.name == "sh" || program.name == "zsh";
  if (is_shell && nesting < kMaxNesting) {
    for (size_t i = 0; i + 1 < program.args.size(); ++i) {
      const std::string& option = program.args[i];
      if (option.size() > 1 && option[0] == '-' && option[1] != '-' && option.back() == 'c')
        return parse_into(program.args[i + 1], folder, nesting + 1, programs);
    }
  }
  programs.push_back(std::move(program));
}

void parse_into(std::string_view command, std::string folder, int nesting, std::vector<ShellProgram>& programs) {
  std::vector<std::string> words;
  ShellProgram program;
  size_t last = programs.size();
  const auto finish = [&] {
    if (!words.empty()) add_program(words, std::move(program), folder, nesting, programs);
    words.clear();
    program = {};
  };
  for (Token& token : Splitter(command).split()) {
    switch (token.kind) {
      case TokenKind::kWord:
        words.push_back(std::move(token.text));
        break;
      case TokenKind::kWrite:
        program.writes = std::move(token.text);
        break;
      case TokenKind::kIgnoredRedirection:
        break;
      case TokenKind::kHereText:
        if (words.empty() && programs.size() > last) {
          programs[last].here_text += token.text;
        } else {
          program.here_text += token.text;
        }
        break;
      case TokenKind::kSeparator:
        if (!words.empty()) last = programs.size();
        finish();
        break;
    }
  }
  finish();
}

}  // namespace

std::vector<ShellProgram> parse_shell(std::string_view command, const std::string& folder) {
  std::vector<ShellProgram> programs;
  parse_into(command, folder, 0, programs);
  return programs;
}

std::string resolve_path(std::string_view folder, std::string_view path) {
  if (path.empty()) return std::string(folder);
  const std::filesystem::path full = path[0] == '/' || path[0] == '~' || folder.empty()
                                         ? std::filesystem::path(path)
                                         : std::filesystem::path(folder) / path;
  std::string text = full.lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace ks::trace
