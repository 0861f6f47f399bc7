#include "signals/signal_set.h"

#include <cmath>

#include "signals/signal_list.h"

namespace ks::signals {

void SignalSet::set(std::string_view name, Value value, const std::string& origin) {
  const SignalInfo* info = find_signal(name);
  KS_CHECK(info != nullptr, "every signal that is computed is in the table of signals");
  if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number)) return;
  signals_[std::string(name)] = Signal{std::move(value), std::string(info->unit), origin};
}

void SignalSet::set_known(std::string_view name, const std::optional<double>& value, const std::string& origin) {
  if (value) set(name, *value, origin);
}

void SignalSet::set_known(std::string_view name, const std::optional<bool>& value, const std::string& origin) {
  if (value) set(name, *value, origin);
}

const Signal* SignalSet::find(std::string_view name) const {
  const auto found = signals_.find(name);
  return found == signals_.end() ? nullptr : &found->second;
}

std::optional<double> SignalSet::number(std::string_view name) const {
  const Signal* signal = find(name);
  if (signal == nullptr || !std::holds_alternative<double>(signal->value)) return std::nullopt;
  return std::get<double>(signal->value);
}

std::optional<bool> SignalSet::truth(std::string_view name) const {
  const Signal* signal = find(name);
  if (signal == nullptr || !std::holds_alternative<bool>(signal->value)) return std::nullopt;
  return std::get<bool>(signal->value);
}

std::optional<std::string> SignalSet::word(std::string_view name) const {
  const Signal* signal = find(name);
  if (signal == nullptr || !std::holds_alternative<std::string>(signal->value)) return std::nullopt;
  return std::get<std::string>(signal->value);
}

std::string value_text(const Value& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "yes" : "no";
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  const double number = std::get<double>(value);
  if (number == std::floor(number) && std::fabs(number) < 1e9) return fmt::format("{:.0f}", number);
  return fmt::format("{:.3g}", number);
}

Json to_json(const SignalSet& signals) {
  Json json = Json::object();
  for (const auto& [name, signal] : signals) {
    Json value;
    std::visit([&](const auto& v) { value = v; }, signal.value);
    json[name] = {{"value", value}, {"unit", signal.unit}, {"origin", signal.origin}};
  }
  return json;
}

}  // namespace ks::signals
