// What can be said of a trigger without any values: can it ever be true, is it always true, can it be true while only
// some signals are known. The tree becomes an OR of ANDs of single comparisons (NOT moves inward); an AND is possible
// if its comparisons leave each signal a value. Comparisons between two signals are taken to be possible unless the
// same two sides are compared in ways that exclude each other.
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "signals/signal_list.h"
#include "steering/trigger_node.h"

namespace ks::steering {
namespace {

/// One comparison, or one truth, perhaps negated.
struct Atom {
  const TriggerNode* node = nullptr;
  bool is_negated = false;
};
using Conjunct = std::vector<Atom>;

std::vector<Conjunct> expand(const TriggerNode& node, bool is_negated) {
  if (node.kind == NodeKind::kNot) return expand(*node.left, !is_negated);
  if (node.kind != NodeKind::kAnd && node.kind != NodeKind::kOr) return {{{&node, is_negated}}};
  std::vector<Conjunct> left = expand(*node.left, is_negated), right = expand(*node.right, is_negated);
  if ((node.kind == NodeKind::kOr) != is_negated) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
  }
  std::vector<Conjunct> product;
  for (const Conjunct& a : left)
    for (const Conjunct& b : right) {
      product.push_back(a);
      product.back().insert(product.back().end(), b.begin(), b.end());
    }
  return product;
}

std::string negated(const std::string& sign) {
  static const std::map<std::string, std::string> other = {{"<", ">="}, {">=", "<"},  {">", "<="},
                                                           {"<=", ">"}, {"==", "!="}, {"!=", "=="}};
  return other.at(sign);
}

std::string mirrored(const std::string& sign) {
  static const std::map<std::string, std::string> other = {{"<", ">"},   {">", "<"},   {"<=", ">="},
                                                           {">=", "<="}, {"==", "=="}, {"!=", "!="}};
  return other.at(sign);
}

/// The value of a part that holds no signal.
std::optional<double> constant(const TriggerNode& node) {
  if (node.kind == NodeKind::kNumber) return node.number;
  if (node.kind != NodeKind::kArithmetic) return std::nullopt;
  const auto left = constant(*node.left), right = constant(*node.right);
  if (!left || !right) return std::nullopt;
  if (node.text == "+") return *left + *right;
  if (node.text == "-") return *left - *right;
  if (node.text == "*") return *left * *right;
  return *right == 0 ? std::nullopt : std::optional<double>(*left / *right);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What comparisons with numbers leave of the values of a part.
struct Range {
  double low = -kInfinity, high = kInfinity;
  bool low_open = false, high_open = false;
  bool is_whole = false;
  std::vector<double> excluded;

  void narrow(const std::string& sign, double value) {
    if (sign == "!=") excluded.push_back(value);
    if (sign == ">" || sign == ">=" || sign == "==") raise(value, sign == ">");
    if (sign == "<" || sign == "<=" || sign == "==") reduce(value, sign == "<");
  }
  void raise(double value, bool open) {
    if (is_whole) {
      value = open ? std::floor(value) + 1 : std::ceil(value);
      open = false;
    }
    if (value > low || (value == low && open)) low = value, low_open = open;
  }
  void reduce(double value, bool open) {
    if (is_whole) {
      value = open ? std::ceil(value) - 1 : std::floor(value);
      open = false;
    }
    if (value < high || (value == high && open)) high = value, high_open = open;
  }
  bool is_empty() const {
    if (low > high || (low == high && (low_open || high_open))) return true;
    if (low != high) return false;
    for (const double value : excluded)
      if (value == low) return true;
    return false;
  }
};

Range range_of(const TriggerNode& node) {
  Range range;
  if (node.kind != NodeKind::kSignal) return range;
  const auto* info = signals::find_signal(node.text);
  range.is_whole = info->kind == signals::SignalKind::kCount;
  if (range.is_whole || info->kind == signals::SignalKind::kShare) range.low = 0;
  return range;
}

/// The signs (as a set of less 1, equal 2, greater 4) that a comparison allows between its two sides.
int allowed(const std::string& sign) {
  static const std::map<std::string, int> bits = {{"<", 1}, {"<=", 3}, {"==", 2}, {">=", 6}, {">", 4}, {"!=", 5}};
  return bits.at(sign);
}

/// Gathers what an AND demands of each part.
struct Demands {
  std::map<std::string, Range> ranges;
  std::map<std::string, int> pairs;
  std::map<std::string, bool> truths;
  std::map<std::string, std::string> words;
  bool is_possible = true;

  void add(const Atom& atom) {
    const TriggerNode& node = *atom.node;
    if (node.kind == NodeKind::kSignal) {
      const auto [at, is_new] = truths.emplace(node.text, !atom.is_negated);
      is_possible = is_possible && (is_new || at->second != atom.is_negated);
      return;
    }
    const std::string sign = atom.is_negated ? negated(node.text) : node.text;
    if (node.left->type == NodeType::kWord) return add_word(node, sign);
    const auto left = constant(*node.left), right = constant(*node.right);
    if (right && !left) return add_range(*node.left, sign, *right);
    if (left && !right) return add_range(*node.right, mirrored(sign), *left);
    if (left && right) {
      const int order = *left < *right ? 1 : *left == *right ? 2 : 4;
      is_possible = is_possible && (allowed(sign) & order) != 0;
      return;
    }
    add_pair(node_text(*node.left), sign, node_text(*node.right));
  }

  void add_word(const TriggerNode& node, const std::string& sign) {
    if (sign != "==" || node.right->kind != NodeKind::kWord) return;
    const auto [at, is_new] = words.emplace(node.left->text, node.right->text);
    is_possible = is_possible && (is_new || at->second == node.right->text);
  }
  void add_range(const TriggerNode& side, const std::string& sign, double value) {
    const auto at = ranges.emplace(node_text(side), range_of(side)).first;
    at->second.narrow(sign, value);
    is_possible = is_possible && !at->second.is_empty();
  }
  void add_pair(std::string left, std::string sign, std::string right) {
    if (left == right) {
      is_possible = is_possible && (allowed(sign) & 2) != 0;
      return;
    }
    if (right < left) {
      std::swap(left, right);
      sign = mirrored(sign);
    }
    const auto at = pairs.emplace(left + " ? " + right, 7).first;
    at->second &= allowed(sign);
    is_possible = is_possible && at->second != 0;
  }
};

bool is_possible(const Conjunct& conjunct) {
  Demands demands;
  for (const Atom& atom : conjunct) demands.add(atom);
  return demands.is_possible;
}

bool uses_only(const TriggerNode& node, const std::function<bool(std::string_view)>& is_available) {
  if (node.kind == NodeKind::kSignal) return is_available(node.text);
  return (node.left == nullptr || uses_only(*node.left, is_available)) &&
         (node.right == nullptr || uses_only(*node.right, is_available));
}

}  // namespace

bool Trigger::never_fires() const {
  for (const Conjunct& conjunct : expand(*root_, false))
    if (is_possible(conjunct)) return false;
  return true;
}

bool Trigger::always_fires() const {
  for (const Conjunct& conjunct : expand(*root_, true))
    if (is_possible(conjunct)) return false;
  return true;
}

bool Trigger::can_fire_with(const std::function<bool(std::string_view)>& is_available) const {
  for (const Conjunct& conjunct : expand(*root_, false)) {
    bool all = true;
    for (const Atom& atom : conjunct) all = all && uses_only(*atom.node, is_available);
    if (all && is_possible(conjunct)) return true;
  }
  return false;
}

}  // namespace ks::steering
