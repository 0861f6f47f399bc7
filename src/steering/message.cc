// From a question to a message: slots filled from evidence, facts with their origin, the lint on what came out.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "signals/signal_list.h"
#include "steering/bank.h"
#include "steering/lint.h"

namespace ks::steering {
namespace {

std::optional<std::string> slot_value(const std::string& name, const signals::SignalSet& signals,
                                      const signals::Evidence& evidence) {
  if (find_slot(name) != nullptr) {
    const auto found = evidence.slots.find(name);
    if (found == evidence.slots.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }
  const signals::Signal* signal = signals.find(name);
  if (signal == nullptr) return std::nullopt;
  return slot_text(*signal, name);
}

/// Facts for a question whose evidence shows none: the values that its trigger was decided on.
std::vector<std::string> value_facts(const Question& question, const signals::SignalSet& signals) {
  std::vector<std::string> facts;
  const auto add = [&](const std::string& name) {
    const signals::Signal* signal = signals.find(name);
    if (signal == nullptr || facts.size() >= kMostFacts) return;
    facts.push_back(signals::fact_line(
        {fmt::format("{}: {}", signals::find_signal(name)->meaning, slot_text(*signal, name)), signal->origin}));
  };
  for (const auto& name : question.evidence) add(name);
  if (facts.empty())
    for (const auto& name : question.trigger.signals()) add(name);
  return facts;
}

/// Control characters have no place in a message, and a value is no place for a paragraph.
std::string tidy(const std::string& value) {
  constexpr size_t kLongestValue = 80;
  std::string text;
  for (const char c : value) text += static_cast<unsigned char>(c) < 32 || c == '"' || c == '{' || c == '}' ? ' ' : c;
  if (text.size() > kLongestValue) text = text.substr(0, kLongestValue - 3) + "...";
  return text;
}

}  // namespace

std::string Message::text() const {
  std::string all;
  for (const auto& fact : facts) all += fact + "\n";
  return all + question;
}

std::string slot_text(const signals::Signal& signal, std::string_view name) {
  const signals::SignalInfo* info = signals::find_signal(name);
  const auto* number = std::get_if<double>(&signal.value);
  if (info == nullptr || number == nullptr) return signals::value_text(signal.value);
  if (info->kind == signals::SignalKind::kShare)
    return std::abs(*number) < 0.1 ? fmt::format("{:.1f} %", *number * 100) : fmt::format("{:.0f} %", *number * 100);
  if (info->kind == signals::SignalKind::kCount) return fmt::format("{:.0f}", *number);
  return fmt::format("{:.3g}", *number);
}

std::optional<Message> fill(const Question& question, const signals::SignalSet& signals,
                            const signals::Evidence& evidence, std::string& why) {
  Message message{question.id, question.category, "", {}, evidence.focus, question.id, question.category, ""};
  const std::string& text = question.text;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('{', at);
    message.question += text.substr(at, open == std::string::npos ? open : open - at);
    if (open == std::string::npos) break;
    const size_t close = text.find('}', open);
    const std::string name = text.substr(open + 1, close - open - 1);
    const auto value = slot_value(name, signals, evidence);
    if (!value) {
      why = fmt::format("no evidence fills {{{}}}", name);
      return std::nullopt;
    }
    message.question += tidy(*value);
    at = close + 1;
  }
  for (const auto& fact : evidence.facts)
    if (message.facts.size() < kMostFacts) message.facts.push_back(signals::fact_line(fact));
  if (message.facts.empty()) message.facts = value_facts(question, signals);
  if (message.facts.empty()) {
    why = "there is nothing to show";
    return std::nullopt;
  }
  message.evidence_hash =
      base::sha256_hex(fmt::format("{}\n{}", message.focus, fmt::join(message.facts, "\n"))).substr(0, 16);
  return message;
}

std::string lint_message(const Message& message, const std::vector<std::string>& names) {
  auto findings = lint_question(message.question, names);
  for (const auto& fact : message.facts)
    for (auto& finding : lint_leaks(fact, names)) findings.push_back(std::move(finding));
  std::string all;
  for (const auto& finding : findings) all += (all.empty() ? "" : ", ") + finding.text();
  return all;
}

}  // namespace ks::steering
