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

/// What a signal says, in words: "rows of the grid: 12", and of a truth its meaning alone, or that it is not so.
std::string value_words(const signals::Signal& signal, const std::string& name) {
  const std::string meaning(signals::find_signal(name)->meaning);
  if (const auto* truth = std::get_if<bool>(&signal.value)) return (*truth ? "" : "it is not so that ") + meaning;
  return fmt::format("{}: {}", meaning, slot_text(signal, name));
}

/// Facts for a question whose evidence shows none: the values that its trigger was decided on.
std::vector<std::string> value_facts(const Question& question, const signals::SignalSet& signals) {
  std::vector<std::string> facts;
  const auto add = [&](const std::string& name) {
    const signals::Signal* signal = signals.find(name);
    if (signal == nullptr || facts.size() >= kMostFacts) return;
    facts.push_back(signals::fact_line({value_words(*signal, name), signal->origin}));
  };
  for (const auto& name : question.evidence) add(name);
  if (facts.empty())
    for (const auto& name : question.trigger.signals()) add(name);
  return facts;
}

/// Cuts a text to about `most` characters, at least 24.
std::string shortened(const std::string& text, size_t most) {
  constexpr size_t kLeast = 24;
  most = std::max(most, kLeast);
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

/// Control characters have no place in a message, and a value is no place for a paragraph.
std::string tidy(const std::string& value) {
  constexpr size_t kLongestValue = 80;
  std::string text;
  for (const char c : value) text += static_cast<unsigned char>(c) < 32 || c == '"' || c == '{' || c == '}' ? ' ' : c;
  return shortened(text, kLongestValue);
}

/// The text with its slots replaced, in order.
std::string with_slots(const std::string& text, const std::vector<std::string>& values) {
  std::string out;
  size_t at = 0;
  for (const auto& value : values) {
    const size_t open = text.find('{', at);
    out += text.substr(at, open - at) + value;
    at = text.find('}', open) + 1;
  }
  return out + text.substr(at);
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

signals::Evidence gather(const Question& question, const EvidenceSource& source) {
  signals::Evidence all;
  if (!source) return all;
  std::vector<std::vector<signals::Fact>> facts;
  for (const auto& signal : question.evidence) {
    signals::Evidence one = source({signal});
    facts.push_back(std::move(one.facts));
    one.facts.clear();
    all.add(one);
  }
  for (size_t turn = 0; all.facts.size() < kMostFacts; ++turn) {
    bool is_done = true;
    for (const auto& of_signal : facts) {
      if (turn >= of_signal.size()) continue;
      is_done = false;
      const bool is_new = std::none_of(all.facts.begin(), all.facts.end(),
                                       [&](const signals::Fact& fact) { return fact.text == of_signal[turn].text; });
      if (is_new) all.facts.push_back(of_signal[turn]);
    }
    if (is_done) break;
  }
  return all;
}

std::optional<Message> fill(const Question& question, const signals::SignalSet& signals,
                            const signals::Evidence& evidence, std::string& why) {
  Message message{question.id, question.category, "", {}, evidence.focus, question.id, question.category, {}, ""};
  size_t length = question.text.size();
  std::vector<std::string> values;
  for (const auto& name : question.slots) {
    const auto value = slot_value(name, signals, evidence);
    if (!value) {
      why = fmt::format("no evidence fills {{{}}}", name);
      return std::nullopt;
    }
    values.push_back(tidy(*value));
    length += name == "claim" ? 0 : values.back().size();
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (question.slots[i] == "claim")
      values[i] = shortened(values[i], length < kLongestQuestion ? kLongestQuestion - length : 0);
  message.question = with_slots(question.text, values);
  for (const auto& [name, value] : evidence.slots)
    if (const SlotInfo* slot = find_slot(name); slot != nullptr && slot->is_name) message.names.push_back(value);
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
  std::vector<std::string> all_names = names;
  all_names.insert(all_names.end(), message.names.begin(), message.names.end());
  auto findings = lint_question(message.question, all_names);
  for (const auto& fact : message.facts)
    for (auto& finding : lint_fact(fact, all_names)) findings.push_back(std::move(finding));
  std::string all;
  for (const auto& finding : findings) all += (all.empty() ? "" : ", ") + finding.text();
  return all;
}

}  // namespace ks::steering
