// Values of signals at one moment of a run. A signal that is absent is unknown: never zero, never false.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/json.h"

namespace ks::signals {

/// A number, a truth, or one word of an enumeration.
using Value = std::variant<double, bool, std::string>;

/// One known signal.
struct Signal {
  Value value;
  std::string unit;    ///< as signal_list.h has it
  std::string origin;  ///< where it comes from: "evaluation 12", "trace event 340"
};

/// The signals that are known, by name.
class SignalSet {
 public:
  /// The unit is that of signal_list.h; `name` must be in that table.
  void set(std::string_view name, Value value, const std::string& origin);
  /// The same for values that may be unknown; nothing is set where they are.
  void set_known(std::string_view name, const std::optional<double>& value, const std::string& origin);
  void set_known(std::string_view name, const std::optional<bool>& value, const std::string& origin);

  const Signal* find(std::string_view name) const;
  bool knows(std::string_view name) const { return find(name) != nullptr; }
  /// The value as a number or a truth; nothing where it is unknown or of another kind.
  std::optional<double> number(std::string_view name) const;
  std::optional<bool> truth(std::string_view name) const;
  std::optional<std::string> word(std::string_view name) const;

  size_t size() const { return signals_.size(); }
  auto begin() const { return signals_.begin(); }
  auto end() const { return signals_.end(); }

 private:
  std::map<std::string, Signal, std::less<>> signals_;
};

/// "0.93", "yes", "measured": a value as people read it.
std::string value_text(const Value& value);

/// {name: {value, unit, origin}}
Json to_json(const SignalSet& signals);

}  // namespace ks::signals
