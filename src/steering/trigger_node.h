// The inside of a trigger: its tree. Included by the trigger_*.cc files alone.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "steering/trigger.h"

namespace ks::steering {

enum class NodeKind { kNumber, kWord, kSignal, kOr, kAnd, kNot, kCompare, kArithmetic };

/// What a part of the expression yields.
enum class NodeType { kNumber, kTruth, kWord };

struct TriggerNode {
  NodeKind kind = NodeKind::kNumber;
  NodeType type = NodeType::kNumber;
  std::string text;   ///< signal, word, or sign: "<", "*" …
  double number = 0;  ///< of kNumber
  int column = 0;     ///< in the text, from 0
  std::unique_ptr<TriggerNode> left, right;
};

/// Parses and checks; `signals` receives the signals in order of their first use.
std::unique_ptr<TriggerNode> parse_trigger(const std::string& text, const Position& position,
                                           std::vector<std::string>& signals);

/// The text of a part, normalised.
std::string node_text(const TriggerNode& node);

}  // namespace ks::steering
