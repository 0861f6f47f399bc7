#include "goal/goal.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"

namespace ks::goal {

/// A node of the parsed expression.
struct Node {
  enum class Kind { kAnd, kOr, kNot, kCompare } kind = Kind::kCompare;
  std::unique_ptr<Node> left, right;
  std::string name, compare;     ///< of a comparison: the figure and the sign
  bool is_percent = false;       ///< the number is a percentage of all scenarios
  std::optional<double> number;  ///< the other side: a number …
  std::string other;             ///< … or a figure
};

namespace {

const std::vector<std::string>& known_names() {
  static const std::vector<std::string> names = {"geomean", "parity", "worst", "correct", "total", "all"};
  return names;
}

struct Token {
  std::string text;
  size_t column = 0;  ///< from 1
};

std::vector<Token> split(const std::string& text) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                                   std::string("._-:/").find(text[end]) != std::string::npos))
        ++end;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-') {
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.' ||
                                   ((text[end] == '-' || text[end] == '+') && std::tolower(text[end - 1]) == 'e')))
        ++end;
    } else if (end < text.size() && text[end] == '=' && std::string("<>=!").find(c) != std::string::npos) {
      ++end;
    }
    tokens.push_back({text.substr(i, end - i), i + 1});
    i = end;
  }
  tokens.push_back({"", text.size() + 1});
  return tokens;
}

/// Recursive descent: or < and < not < comparison.
class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text), tokens_(split(text)) {}

  std::unique_ptr<Node> parse() {
    auto root = either();
    if (!now().text.empty())
      fail(fmt::format("\"{}\" is not expected here; join comparisons with \"and\" or \"or\"", now().text));
    return root;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  bool take(const std::string& word) {
    if (now().text != word) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error("goal \"{}\", column {}: {}", text_, now().column, what);
  }

  std::unique_ptr<Node> join(Node::Kind kind, std::unique_ptr<Node> left, std::unique_ptr<Node> right) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }
  std::unique_ptr<Node> either() {
    auto left = both();
    while (take("or")) left = join(Node::Kind::kOr, std::move(left), both());
    return left;
  }
  std::unique_ptr<Node> both() {
    auto left = one();
    while (take("and")) left = join(Node::Kind::kAnd, std::move(left), one());
    return left;
  }
  std::unique_ptr<Node> one() {
    if (take("not")) return join(Node::Kind::kNot, one(), nullptr);
    if (take("(")) {
      auto inner = either();
      if (!take(")")) fail("\")\" is missing");
      return inner;
    }
    return comparison();
  }
  std::string figure() {
    const std::string word = now().text;
    const std::string head = word.substr(0, word.find('.'));
    const auto& names = known_names();
    if (std::find(names.begin(), names.end(), head) == names.end()) {
      const auto near = base::nearest_word(head, names);
      fail(word.empty() ? "a figure is missing; known: " + fmt::format("{}", fmt::join(names, ", "))
                        : fmt::format("unknown figure \"{}\"{}; known: {}, and NAME.BASELINE", word,
                                      near.empty() ? "" : " (did you mean " + near + "?)", fmt::join(names, ", ")));
    }
    ++at_;
    return word;
  }
  /// Takes a percent sign after a number; only counts of scenarios have percentages.
  bool is_percent(const std::string& name) {
    if (now().text != "%") return false;
    const std::string head = name.substr(0, name.find('.'));
    if (head != "parity" && head != "correct")
      fail(fmt::format("a percentage is of scenarios; \"{}\" is no count of them", name));
    ++at_;
    return true;
  }
  std::unique_ptr<Node> comparison() {
    auto node = std::make_unique<Node>();
    node->name = figure();
    const std::string sign = now().text;
    if (sign != ">=" && sign != "<=" && sign != ">" && sign != "<" && sign != "==" && sign != "!=")
      fail(fmt::format("a comparison (>=, <=, >, <, ==, !=) is missing after \"{}\"", node->name));
    ++at_;
    node->compare = sign;
    const std::string value = now().text;
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (!value.empty() && error == std::errc() && end == value.data() + value.size()) {
      node->number = number;
      ++at_;
      node->is_percent = is_percent(node->name);
    } else {
      node->other = figure();
    }
    return node;
  }

  const std::string& text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

std::optional<double> value_of(const Figures& figures, const std::string& name) {
  const auto found = figures.find(name);
  return found == figures.end() ? std::nullopt : found->second;
}

Decision compare(const Node& node, const Figures& figures) {
  const auto left = value_of(figures, node.name);
  auto right = node.number ? node.number : value_of(figures, node.other);
  if (node.is_percent) {
    const auto all = value_of(figures, "all");
    right = all ? std::optional<double>(*node.number / 100 * *all) : std::nullopt;
  }
  if (!left || !right) return Decision::kUndecided;
  bool holds = false;
  if (node.compare == ">=") holds = *left >= *right;
  if (node.compare == "<=") holds = *left <= *right;
  if (node.compare == ">") holds = *left > *right;
  if (node.compare == "<") holds = *left < *right;
  if (node.compare == "==") holds = *left == *right;
  if (node.compare == "!=") holds = *left != *right;
  return holds ? Decision::kMet : Decision::kNotMet;
}

Decision decide_node(const Node& node, const Figures& figures) {
  switch (node.kind) {
    case Node::Kind::kCompare:
      return compare(node, figures);
    case Node::Kind::kAnd:
      return std::min(decide_node(*node.left, figures), decide_node(*node.right, figures));
    case Node::Kind::kOr:
      return std::max(decide_node(*node.left, figures), decide_node(*node.right, figures));
    case Node::Kind::kNot:
      break;
  }
  const Decision inner = decide_node(*node.left, figures);
  return inner == Decision::kUndecided ? inner : inner == Decision::kMet ? Decision::kNotMet : Decision::kMet;
}

void explain_node(const Node& node, const Figures& figures, std::vector<std::string>& lines) {
  if (node.kind != Node::Kind::kCompare) {
    explain_node(*node.left, figures, lines);
    if (node.right != nullptr) explain_node(*node.right, figures, lines);
    return;
  }
  const auto value = value_of(figures, node.name);
  lines.push_back(fmt::format("{} ({}) {} {}: {}", node.name, value ? fmt::format("{:.4g}", *value) : "undefined",
                              node.compare,
                              node.number ? fmt::format("{}{}", *node.number, node.is_percent ? "%" : "") : node.other,
                              decision_name(compare(node, figures))));
}

std::optional<double> find_target(const Node& node, const std::string& name) {
  if (node.kind == Node::Kind::kCompare)
    return node.name == name && (node.compare == ">=" || node.compare == ">") ? node.number : std::nullopt;
  if (const auto left = find_target(*node.left, name)) return left;
  return node.right != nullptr ? find_target(*node.right, name) : std::nullopt;
}

}  // namespace

const char* decision_name(Decision decision) {
  switch (decision) {
    case Decision::kMet:
      return "met";
    case Decision::kNotMet:
      return "not_met";
    case Decision::kUndecided:
      break;
  }
  return "undecided";
}

Figures figures_of(const core::Summary& summary) {
  Figures figures;
  figures["correct"] = summary.correct;
  figures["total"] = figures["all"] = summary.total;
  const auto add = [&](const std::string& name, const auto& by_baseline) {
    for (const auto& [baseline, value] : by_baseline) {
      const std::optional<double> number = value ? std::optional<double>(*value) : std::nullopt;
      figures[name + "." + baseline] = number;
      if (baseline == "fastest") figures[name] = number;
    }
  };
  add("geomean", summary.geomean_low);
  add("worst", summary.worst);
  add("parity", summary.parity);
  return figures;
}

Goal::Goal(const std::string& text) : text_(text), root_(Parser(text).parse()) {}
Goal::~Goal() = default;
Goal::Goal(Goal&&) noexcept = default;
Goal& Goal::operator=(Goal&&) noexcept = default;

Decision Goal::decide(const Figures& figures) const {
  return decide_node(*root_, figures);
}

std::vector<std::string> Goal::explain(const Figures& figures) const {
  std::vector<std::string> lines;
  explain_node(*root_, figures, lines);
  return lines;
}

std::optional<double> Goal::target(const std::string& name) const {
  return find_target(*root_, name);
}

}  // namespace ks::goal
