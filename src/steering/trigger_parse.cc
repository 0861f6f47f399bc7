// Reading a trigger: words with their columns, then recursive descent, one function a level of binding, then types.
#include <cctype>
#include <charconv>

#include "base/error.h"
#include "signals/signal_list.h"
#include "steering/trigger_node.h"

namespace ks::steering {
namespace {

using NodePtr = std::unique_ptr<TriggerNode>;

struct Word {
  std::string text;
  int column = 0;
};

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

const char* type_name(NodeType type) {
  switch (type) {
    case NodeType::kNumber:
      return "a number";
    case NodeType::kTruth:
      return "a truth";
    case NodeType::kWord:
      break;
  }
  return "a word";
}

class Parser {
 public:
  Parser(const std::string& text, const Position& position, std::vector<std::string>& signals)
      : text_(text), position_(position), signals_(signals) {
    split();
  }

  NodePtr parse() {
    NodePtr root = either();
    if (!now().text.empty()) fail(now().column, fmt::format("\"{}\" is not expected here", now().text));
    want(*root, NodeType::kTruth, "the trigger");
    return root;
  }

 private:
  [[noreturn]] void fail(int column, const std::string& what) const {
    throw Error("{}:{}:{}: {}", position_.file, position_.line, position_.column + column, what);
  }

  size_t word_end(size_t begin) const {
    const char c = text_[begin];
    size_t end = begin + 1;
    if (is_letter(c)) {
      while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    } else if (is_digit(c) || c == '.') {
      while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.' || is_letter(text_[end]))) ++end;
    } else if (c == '\'') {
      end = text_.find('\'', begin + 1);
      if (end == std::string::npos) fail(static_cast<int>(begin), "the quote ' is not closed");
      ++end;
    } else if (std::string("<>=!").find(c) != std::string::npos && end < text_.size() && text_[end] == '=') {
      ++end;
    } else if (std::string("<>()+-*/").find(c) == std::string::npos) {
      fail(static_cast<int>(begin), fmt::format("\"{}\" means nothing here", c));
    }
    return end;
  }

  void split() {
    for (size_t i = 0; i < text_.size();) {
      if (std::isspace(static_cast<unsigned char>(text_[i])) != 0) {
        ++i;
        continue;
      }
      const size_t end = word_end(i);
      words_.push_back({text_.substr(i, end - i), static_cast<int>(i)});
      i = end;
    }
    words_.push_back({"", static_cast<int>(text_.size())});
  }

  const Word& now() const { return words_[at_]; }
  bool take(const std::string& text) {
    if (upper(now().text) != text) return false;
    ++at_;
    return true;
  }

  void want(const TriggerNode& node, NodeType type, const std::string& what) const {
    if (node.type != type)
      fail(node.column,
           fmt::format("{} must be {}, \"{}\" is {}", what, type_name(type), node_text(node), type_name(node.type)));
  }

  static NodePtr make(NodeKind kind, NodeType type, const Word& word, NodePtr left = nullptr, NodePtr right = nullptr) {
    auto node = std::make_unique<TriggerNode>();
    node->kind = kind;
    node->type = type;
    node->text = word.text;
    node->column = left != nullptr && kind != NodeKind::kNot ? left->column : word.column;
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }

  NodePtr either() {
    NodePtr left = both();
    while (upper(now().text) == "OR") left = logic(NodeKind::kOr, std::move(left));
    return left;
  }
  NodePtr both() {
    NodePtr left = negation();
    while (upper(now().text) == "AND") left = logic(NodeKind::kAnd, std::move(left));
    return left;
  }
  NodePtr logic(NodeKind kind, NodePtr left) {
    const Word sign{upper(now().text), now().column};
    ++at_;
    NodePtr right = kind == NodeKind::kOr ? both() : negation();
    want(*left, NodeType::kTruth, "what stands before " + sign.text);
    want(*right, NodeType::kTruth, "what follows " + sign.text);
    return make(kind, NodeType::kTruth, sign, std::move(left), std::move(right));
  }
  NodePtr negation() {
    const Word sign{"NOT", now().column};
    if (!take("NOT")) return comparison();
    NodePtr inner = negation();
    want(*inner, NodeType::kTruth, "what follows NOT");
    return make(NodeKind::kNot, NodeType::kTruth, sign, std::move(inner));
  }

  NodePtr comparison() {
    NodePtr left = sum();
    const Word sign = now();
    if (sign.text == "=" || sign.text == "!")
      fail(sign.column, fmt::format("\"{}\" is no comparison; write == or !=", sign.text));
    if (sign.text != "<" && sign.text != ">" && sign.text != "<=" && sign.text != ">=" && sign.text != "==" &&
        sign.text != "!=")
      return left;
    ++at_;
    NodePtr right = sum();
    if (left->type != right->type)
      fail(sign.column, fmt::format("\"{}\" is {} and \"{}\" is {}: they cannot be compared", node_text(*left),
                                    type_name(left->type), node_text(*right), type_name(right->type)));
    if (left->type == NodeType::kTruth)
      fail(sign.column, fmt::format("a truth is not compared; write {} or NOT {}", node_text(*left), node_text(*left)));
    if (left->type == NodeType::kWord && sign.text != "==" && sign.text != "!=")
      fail(sign.column, "words are compared with == or != alone");
    return make(NodeKind::kCompare, NodeType::kTruth, sign, std::move(left), std::move(right));
  }

  NodePtr sum() {
    NodePtr left = product();
    while (now().text == "+" || now().text == "-") left = arithmetic(std::move(left), true);
    return left;
  }
  NodePtr product() {
    NodePtr left = factor();
    while (now().text == "*" || now().text == "/") left = arithmetic(std::move(left), false);
    return left;
  }
  NodePtr arithmetic(NodePtr left, bool is_sum) {
    const Word sign = now();
    ++at_;
    NodePtr right = is_sum ? product() : factor();
    want(*left, NodeType::kNumber, fmt::format("what stands before {}", sign.text));
    want(*right, NodeType::kNumber, fmt::format("what follows {}", sign.text));
    if (sign.text == "/" && right->kind == NodeKind::kNumber && right->number == 0)
      fail(right->column, "this divides by zero");
    return make(NodeKind::kArithmetic, NodeType::kNumber, sign, std::move(left), std::move(right));
  }

  NodePtr factor() {
    const Word word = now();
    if (word.text.empty()) fail(word.column, "a signal or a number is missing at the end");
    ++at_;
    if (word.text == "(") {
      NodePtr inner = either();
      if (!take(")")) fail(now().column, "\")\" is missing");
      return inner;
    }
    if (word.text == "-") {
      NodePtr number = factor();
      if (number->kind != NodeKind::kNumber) fail(word.column, "a minus sign may stand before a number alone");
      number->number = -number->number;
      return number;
    }
    if (is_digit(word.text[0]) || word.text[0] == '.') return literal(word);
    if (word.text[0] == '\'') {
      NodePtr node = make(NodeKind::kWord, NodeType::kWord, word);
      node->text = word.text.substr(1, word.text.size() - 2);
      return node;
    }
    if (!is_letter(word.text[0]))
      fail(word.column, fmt::format("a signal or a number is missing before \"{}\"", word.text));
    return signal(word);
  }

  NodePtr literal(const Word& word) {
    NodePtr node = make(NodeKind::kNumber, NodeType::kNumber, word);
    const char* end = word.text.data() + word.text.size();
    const auto [stop, error] = std::from_chars(word.text.data(), end, node->number);
    if (error != std::errc() || stop != end) fail(word.column, fmt::format("\"{}\" is not a number", word.text));
    return node;
  }

  NodePtr signal(const Word& word) {
    const signals::SignalInfo* info = signals::find_signal(word.text);
    if (info == nullptr) unknown(word);
    NodeType type = NodeType::kNumber;
    if (info->kind == signals::SignalKind::kTruth) type = NodeType::kTruth;
    if (info->kind == signals::SignalKind::kWord) type = NodeType::kWord;
    bool seen = false;
    for (const auto& name : signals_) seen = seen || name == word.text;
    if (!seen) signals_.push_back(word.text);
    return make(NodeKind::kSignal, type, word);
  }

  [[noreturn]] void unknown(const Word& word) const {
    if (upper(word.text) == "AND" || upper(word.text) == "OR" || upper(word.text) == "NOT")
      fail(word.column, fmt::format("a signal or a number is missing before {}", word.text));
    std::vector<std::string> names;
    for (const auto& known : signals::kSignalList) names.emplace_back(known.name);
    const std::string near = base::nearest_word(word.text, names);
    fail(word.column, fmt::format("unknown signal \"{}\"{}", word.text,
                                  near.empty() ? "; docs/formats/bank.md says where they are listed"
                                               : fmt::format(" (did you mean {}?)", near)));
  }

  const std::string& text_;
  const Position& position_;
  std::vector<std::string>& signals_;
  std::vector<Word> words_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<TriggerNode> parse_trigger(const std::string& text, const Position& position,
                                           std::vector<std::string>& signals) {
  return Parser(text, position, signals).parse();
}

std::string node_text(const TriggerNode& node) {
  switch (node.kind) {
    case NodeKind::kNumber:
      return fmt::format("{}", node.number);
    case NodeKind::kWord:
      return "'" + node.text + "'";
    case NodeKind::kSignal:
      return node.text;
    case NodeKind::kNot:
      return "NOT " + node_text(*node.left);
    case NodeKind::kOr:
      return fmt::format("({} OR {})", node_text(*node.left), node_text(*node.right));
    case NodeKind::kAnd:
    case NodeKind::kCompare:
    case NodeKind::kArithmetic:
      break;
  }
  return fmt::format("{} {} {}", node_text(*node.left), node.text, node_text(*node.right));
}

}  // namespace ks::steering
