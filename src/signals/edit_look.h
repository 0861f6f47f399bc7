// What one edit changes, from the text that a tool call writes: how many lines, whether only literals, whether types of
// numbers, and which sizes it compares with.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace ks::signals {

/// An edit, as far as the call tells.
struct EditLook {
  bool knows_old = false;      ///< the call names what it replaces (a patch, a replacement), not only a whole file
  int changed_lines = 0;       ///< lines taken out plus lines put in
  bool literals_only = false;  ///< the same text but for numbers; false where the old text is unknown
  bool changes_number_type = false;
  std::set<double> compared_sizes;  ///< integers of 16 and more in added lines that compare
  std::string removed, added;
};

EditLook look_at_edit(const std::string& tool, const Json& input);

/// The text with every number replaced by one sign, and spaces made one.
std::string without_numbers(std::string_view text);

/// Integers of 16 and more in lines that hold a comparison.
std::set<double> compared_sizes_of(std::string_view text);

}  // namespace ks::signals
