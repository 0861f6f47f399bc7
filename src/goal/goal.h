// Goal expressions: "geomean >= 1.0 and correct == all and worst >= 0.9". A goal is parsed once, then decided on the
// figures of an evaluation in three-valued logic: what is undefined (a geomean where something is wrong) makes a
// comparison undecided, and undecided is not met. docs/formats/goal.md has the grammar.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/record.h"

namespace ks::goal {

enum class Decision { kNotMet, kUndecided, kMet };

/// "met", "not_met", "undecided".
const char* decision_name(Decision decision);

/// The numbers that a goal speaks of, by name: "geomean", "geomean.NAME", "parity", "worst", "correct", "total", "all".
/// A name without a value is undefined.
using Figures = std::map<std::string, std::optional<double>>;

/// Figures of an evaluation. Geomeans are the lower ends of their intervals; bare names mean against "fastest".
Figures figures_of(const core::Summary& summary);

struct Node;

/// A parsed goal.
class Goal {
 public:
  /// Throws ks::Error naming the column, the word and the nearest known word.
  explicit Goal(const std::string& text);
  ~Goal();
  Goal(Goal&&) noexcept;
  Goal& operator=(Goal&&) noexcept;

  const std::string& text() const { return text_; }
  Decision decide(const Figures& figures) const;
  /// Every comparison with its value: "geomean (0.93) >= 1.0: not met".
  std::vector<std::string> explain(const Figures& figures) const;
  /// The number that `name` is compared with by >= or >, if the goal asks that (the target of the geomean).
  std::optional<double> target(const std::string& name) const;

 private:
  std::string text_;
  std::unique_ptr<Node> root_;
};

}  // namespace ks::goal
