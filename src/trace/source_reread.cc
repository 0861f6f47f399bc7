// See source_reread.h. Lines are compared by 64-bit hashes.
#include "trace/source_reread.h"

#include <algorithm>

#include "base/hash.h"
#include "trace/importer.h"

namespace ks::trace {

namespace {

constexpr size_t kShortLineBytes = 4;  ///< shorter lines ("}", "});") are everywhere and say nothing by themselves

uint64_t hash_of(std::string_view line) {
  return base::buffer_hash(line.data(), line.size(), 0);
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Calls use(line, is_last) for each line of a text, without its newline.
template <typename Use>
void for_each_line(std::string_view text, Use use) {
  for (size_t at = 0;;) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return use(text.substr(at), true);
    use(text.substr(at, end - at), false);
    at = end + 1;
  }
}

/// Length of a line-number prefix: digits, then "→", a tab, or ":" / "-" as grep -n writes; 0 where there is none.
size_t number_prefix(std::string_view line, bool with_grep) {
  size_t at = 0;
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
  const size_t first = at;
  while (at < line.size() && line[at] >= '0' && line[at] <= '9') ++at;
  if (at == first || at == line.size()) return 0;
  if (line.substr(at).starts_with("\xE2\x86\x92")) return at + 3;
  if (line[at] == '\t') return at + 1;
  return with_grep && (line[at] == ':' || line[at] == '-' || line[at] == '|') ? at + 1 : 0;
}

/// Length of "path:12:" as grep -rn writes it before a line; 0 where there is none.
size_t place_prefix(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 ||
      line.substr(0, colon).find_first_of(" \t\"'(") != std::string_view::npos)
    return 0;
  size_t at = colon + 1;
  while (at < line.size() && line[at] >= '0' && line[at] <= '9') ++at;
  return at > colon + 1 && at < line.size() && line[at] == ':' ? at + 1 : 0;
}

}  // namespace

int64_t count_chars(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string_view bare_line(std::string_view line) {
  const size_t number = number_prefix(line, true);
  return trim(line.substr(number > 0 ? number : place_prefix(line)));
}

void SourceReread::learn(std::string_view text) {
  for_each_line(text, [&](std::string_view line, bool) {
    const std::string_view bare = trim(line);
    if (bare.size() >= kShortLineBytes) own_lines_.insert(hash_of(bare));
  });
}

void SourceReread::become_own(const std::string& path) {
  own_files_.add(path);
  const auto shown = shown_.find(path);
  if (shown == shown_.end()) return;
  own_lines_.insert(shown->second.begin(), shown->second.end());
  shown_.erase(shown);
}

void SourceReread::call(const std::string& id, const std::string& tool, const Json& body) {
  const auto strings = [&](const char* key) {
    std::vector<std::string> list;
    if (const Json& value = value_at(body, key); value.is_array())
      for (const Json& entry : value)
        if (entry.is_string()) list.push_back(entry.get<std::string>());
    return list;
  };
  for (const std::string& path : strings("writes")) become_own(path);
  const Json& input = value_at(body, "input");
  for (const std::string& text : written_texts(tool, input)) learn(text);
  OpenCall open{is_read_tool(tool), strings("reads")};
  open_[id] = std::move(open);
}

/// The two figures that look at read tools alone; published elsewhere, so they stand beside ours.
void SourceReread::count_read_tool(const std::string& path, std::string_view text) {
  const auto entry = read_tool_lines_.try_emplace(path);
  Lines& lines = entry.first->second;
  if (!entry.second) figures_.read_path_chars += count_chars(text);
  for_each_line(text, [&](std::string_view line, bool) {
    const std::string_view bare = trim(line.substr(number_prefix(line, false)));
    if (count_chars(bare) < static_cast<int64_t>(kShortLineBytes)) return;
    if (!lines.insert(hash_of(bare)).second) figures_.read_line_chars += count_chars(line);
  });
}

bool SourceReread::is_known(std::string_view line) const {
  const std::string_view bare = bare_line(line);
  if (own_lines_.contains(hash_of(bare))) return true;
  const bool is_diff = !bare.empty() && (bare[0] == '+' || bare[0] == '-');
  const std::string_view content = is_diff ? trim(bare.substr(1)) : std::string_view();
  return content.size() >= kShortLineBytes && own_lines_.contains(hash_of(content));
}

void SourceReread::result(const std::string& id, std::string_view text, bool is_main) {
  const int64_t chars = count_chars(text);
  figures_.result_chars += chars;
  if (is_main) figures_.main_result_chars += chars;
  bool follows = false;  // what the line before was: short lines go with it
  for_each_line(text, [&](std::string_view line, bool is_last) {
    if (bare_line(line).size() >= kShortLineBytes) follows = is_known(line);
    if (follows) figures_.own_chars += count_chars(line) + (is_last ? 0 : 1);
  });
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const OpenCall call = std::move(found->second);
  open_.erase(found);
  if (is_main && call.is_read_tool && !call.reads.empty()) count_read_tool(call.reads[0], text);
  if (call.reads.empty()) return;
  const bool is_own = std::any_of(call.reads.begin(), call.reads.end(),
                                  [&](const std::string& path) { return own_files_.contains(path); });
  Lines& lines = is_own ? own_lines_ : shown_[call.reads[0]];
  for_each_line(text, [&](std::string_view line, bool) {
    const std::string_view bare = bare_line(line);
    if (bare.size() >= kShortLineBytes) lines.insert(hash_of(bare));
  });
}

}  // namespace ks::trace
