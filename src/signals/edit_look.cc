#include "signals/edit_look.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "trace/tool_kinds.h"

namespace ks::signals {
namespace {

constexpr std::array<std::string_view, 20> kNumberTypes = {
    "float", "double", "half", "half2", "__half", "__half2",       "float2",         "float4",   "bf16", "fp16",
    "fp32",  "fp64",   "fp8",  "e4m3",  "e5m2",   "__nv_bfloat16", "__nv_bfloat162", "bfloat16", "tf32", "int8"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

template <typename Use>
void for_each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

template <typename Use>
void for_each_word(std::string_view text, const Use& use) {
  for (size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      ++i;
      continue;
    }
    const size_t start = i;
    while (i < text.size() && is_word(text[i])) ++i;
    use(text.substr(start, i - start));
  }
}

std::map<std::string_view, int> number_types(std::string_view text) {
  std::map<std::string_view, int> counts;
  for_each_word(text, [&](std::string_view word) {
    if (std::find(kNumberTypes.begin(), kNumberTypes.end(), word) != kNumberTypes.end()) ++counts[word];
  });
  return counts;
}

int count_lines(std::string_view text) {
  int lines = 0;
  for_each_line(text, [&](std::string_view) { ++lines; });
  return lines;
}

std::string text_of(const Json& input, std::initializer_list<const char*> keys) {
  if (input.is_object())
    for (const char* key : keys)
      if (const auto found = input.find(key); found != input.end() && found->is_string())
        return found->get<std::string>();
  return "";
}

bool looks_like_patch(std::string_view text) {
  return text.find("*** Begin Patch") != std::string_view::npos || text.find("\n@@") != std::string_view::npos ||
         text.starts_with("@@") || text.starts_with("--- ");
}

void read_patch(std::string_view patch, EditLook& look) {
  for_each_line(patch, [&](std::string_view line) {
    if (line.empty() || line.starts_with("+++") || line.starts_with("---") || line.starts_with("***")) return;
    if (line[0] == '-') look.removed.append(line.substr(1)).push_back('\n');
    if (line[0] == '+') look.added.append(line.substr(1)).push_back('\n');
  });
  look.knows_old = true;
}

/// Lines that both sides have are no change (an editor's replacement quotes its surroundings).
void drop_common_lines(EditLook& look) {
  std::map<std::string, int> old_lines;
  for_each_line(look.removed, [&](std::string_view line) { ++old_lines[std::string(line)]; });
  std::string added, removed;
  for_each_line(look.added, [&](std::string_view line) {
    auto found = old_lines.find(std::string(line));
    if (found != old_lines.end() && found->second > 0) return void(--found->second);
    added.append(line).push_back('\n');
  });
  for_each_line(look.removed, [&](std::string_view line) {
    auto& left = old_lines[std::string(line)];
    if (left <= 0) return;
    --left;
    removed.append(line).push_back('\n');
  });
  look.added = std::move(added);
  look.removed = std::move(removed);
}

void read_texts(const std::string& tool, const Json& input, EditLook& look) {
  std::string patch = text_of(input, {"patch", "diff", "input"});
  if (patch.empty() && input.is_string()) patch = input.get<std::string>();
  if (patch.empty()) patch = trace::shell_command_of(tool, input);
  if (looks_like_patch(patch)) return read_patch(patch, look);
  const auto replace = [&](const Json& edit) {
    const std::string old_text = text_of(edit, {"old_string", "old_str"});
    if (old_text.empty()) return;
    look.knows_old = true;
    look.removed += old_text + "\n";
    look.added += text_of(edit, {"new_string", "new_str"}) + "\n";
  };
  replace(input);
  if (input.is_object() && input.contains("edits") && input["edits"].is_array())
    for (const auto& edit : input["edits"]) replace(edit);
  if (look.knows_old) return drop_common_lines(look);
  for (const auto& text : trace::written_texts(tool, input)) look.added += text + "\n";
}

}  // namespace

std::string without_numbers(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (std::isdigit(c) != 0 && (i == 0 || !is_word(text[i - 1]))) {
      while (i + 1 < text.size() && (is_word(text[i + 1]) || text[i + 1] == '.')) ++i;
      result += '#';
    } else if (std::isspace(c) != 0) {
      if (!result.empty() && result.back() != ' ') result += ' ';
    } else {
      result += text[i];
    }
  }
  return result;
}

std::set<double> compared_sizes_of(std::string_view text) {
  std::set<double> sizes;
  for_each_line(text, [&](std::string_view line) {
    const bool compares = line.find("==") != std::string_view::npos || line.find("<=") != std::string_view::npos ||
                          line.find(">=") != std::string_view::npos || line.find("case ") != std::string_view::npos ||
                          line.find("if ") != std::string_view::npos || line.find("if(") != std::string_view::npos;
    if (!compares) return;
    for_each_word(line, [&](std::string_view word) {
      if (word.size() > 9 || !std::all_of(word.begin(), word.end(), [](char c) { return std::isdigit(c) != 0; }))
        return;
      if (const double size = std::stod(std::string(word)); size >= 16) sizes.insert(size);
    });
  });
  return sizes;
}

EditLook look_at_edit(const std::string& tool, const Json& input) {
  EditLook look;
  read_texts(tool, input, look);
  look.changed_lines = count_lines(look.removed) + count_lines(look.added);
  look.literals_only = look.knows_old && look.changed_lines > 0 && look.removed != look.added &&
                       without_numbers(look.removed) == without_numbers(look.added);
  look.changes_number_type = look.knows_old && number_types(look.removed) != number_types(look.added);
  look.compared_sizes = compared_sizes_of(look.added);
  return look;
}

}  // namespace ks::signals
