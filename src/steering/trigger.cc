#include "steering/trigger.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "steering/trigger_node.h"

namespace ks::steering {
namespace {

constexpr double kTopSeverity = 10;

Truth known(bool holds) {
  return holds ? Truth::kTrue : Truth::kFalse;
}

std::optional<double> number_of(const TriggerNode& node, const signals::SignalSet& signals) {
  if (node.kind == NodeKind::kNumber) return node.number;
  if (node.kind == NodeKind::kSignal) return signals.number(node.text);
  const auto left = number_of(*node.left, signals);
  const auto right = number_of(*node.right, signals);
  if (!left || !right) return std::nullopt;
  double value = 0;
  switch (node.text[0]) {
    case '+':
      value = *left + *right;
      break;
    case '-':
      value = *left - *right;
      break;
    case '*':
      value = *left * *right;
      break;
    default:
      if (*right == 0) return std::nullopt;
      value = *left / *right;
  }
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<std::string> word_of(const TriggerNode& node, const signals::SignalSet& signals) {
  return node.kind == NodeKind::kWord ? std::optional<std::string>(node.text) : signals.word(node.text);
}

bool holds(const std::string& sign, double left, double right) {
  if (sign == "<") return left < right;
  if (sign == ">") return left > right;
  if (sign == "<=") return left <= right;
  if (sign == ">=") return left >= right;
  return (left == right) == (sign == "==");
}

Truth compare(const TriggerNode& node, const signals::SignalSet& signals) {
  if (node.left->type == NodeType::kWord) {
    const auto left = word_of(*node.left, signals), right = word_of(*node.right, signals);
    if (!left || !right) return Truth::kUnknown;
    return known((*left == *right) == (node.text == "=="));
  }
  const auto left = number_of(*node.left, signals), right = number_of(*node.right, signals);
  if (!left || !right || !std::isfinite(*left) || !std::isfinite(*right)) return Truth::kUnknown;
  return known(holds(node.text, *left, *right));
}

Truth decide(const TriggerNode& node, const signals::SignalSet& signals) {
  switch (node.kind) {
    case NodeKind::kOr:
      return std::max(decide(*node.left, signals), decide(*node.right, signals));
    case NodeKind::kAnd:
      return std::min(decide(*node.left, signals), decide(*node.right, signals));
    case NodeKind::kNot: {
      const Truth inner = decide(*node.left, signals);
      return inner == Truth::kUnknown ? inner : known(inner == Truth::kFalse);
    }
    case NodeKind::kCompare:
      return compare(node, signals);
    case NodeKind::kSignal: {
      const auto value = signals.truth(node.text);
      return value ? known(*value) : Truth::kUnknown;
    }
    case NodeKind::kNumber:
    case NodeKind::kWord:
    case NodeKind::kArithmetic:
      break;
  }
  KS_CHECK(false, "a number or a word stands where a truth is decided");
}

double severity_of(const TriggerNode& node, const signals::SignalSet& signals) {
  if (decide(node, signals) != Truth::kTrue) return 0;
  if (node.kind == NodeKind::kOr) return std::max(severity_of(*node.left, signals), severity_of(*node.right, signals));
  if (node.kind == NodeKind::kAnd) return std::min(severity_of(*node.left, signals), severity_of(*node.right, signals));
  if (node.kind != NodeKind::kCompare || node.left->type == NodeType::kWord || node.text == "==") return 1;
  const double left = *number_of(*node.left, signals), right = *number_of(*node.right, signals);
  return std::min(kTopSeverity, std::abs(left - right) / (right == 0 ? 1 : std::abs(right)));
}

std::string side_text(const TriggerNode& node, const signals::SignalSet& signals) {
  if (node.kind == NodeKind::kNumber || node.kind == NodeKind::kWord) return node_text(node);
  if (node.kind == NodeKind::kSignal) {
    const signals::Signal* signal = signals.find(node.text);
    return fmt::format("{} ({})", node.text, signal == nullptr ? "unknown" : signals::value_text(signal->value));
  }
  return fmt::format("{} {} {}", side_text(*node.left, signals), node.text, side_text(*node.right, signals));
}

void explain_node(const TriggerNode& node, const signals::SignalSet& signals, std::vector<std::string>& lines) {
  if (node.kind == NodeKind::kOr || node.kind == NodeKind::kAnd) {
    explain_node(*node.left, signals, lines);
    explain_node(*node.right, signals, lines);
    return;
  }
  std::string text;
  if (node.kind == NodeKind::kNot) {
    text = "NOT " + side_text(*node.left, signals);
  } else {
    text = side_text(node, signals);
  }
  lines.push_back(fmt::format("{}: {}", text, truth_name(decide(node, signals))));
}

}  // namespace

const char* truth_name(Truth truth) {
  switch (truth) {
    case Truth::kFalse:
      return "false";
    case Truth::kTrue:
      return "true";
    case Truth::kUnknown:
      break;
  }
  return "unknown";
}

Trigger::Trigger(const std::string& text, const Position& position) : text_(text) {
  root_ = parse_trigger(text_, position, signals_);
}
Trigger::~Trigger() = default;
Trigger::Trigger(Trigger&&) noexcept = default;
Trigger& Trigger::operator=(Trigger&&) noexcept = default;

Truth Trigger::evaluate(const signals::SignalSet& signals) const {
  return decide(*root_, signals);
}

double Trigger::severity(const signals::SignalSet& signals) const {
  return severity_of(*root_, signals);
}

std::vector<std::string> Trigger::explain(const signals::SignalSet& signals) const {
  std::vector<std::string> lines;
  explain_node(*root_, signals, lines);
  return lines;
}

}  // namespace ks::steering
