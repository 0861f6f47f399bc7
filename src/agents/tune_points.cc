#include "agents/tune_points.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/error.h"

namespace ks::agents {
namespace {

constexpr std::string_view kMark = "@tune";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

/// Where the value of `name` stands in the code of a line: [begin, end), empty where it cannot be found.
std::pair<size_t, size_t> value_range(std::string_view code, const std::string& name) {
  for (size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
    const size_t after = at + name.size();
    if ((at > 0 && is_word(code[at - 1])) || (after < code.size() && is_word(code[after]))) continue;
    size_t begin = code.find_first_not_of(" \t", after);
    if (begin == std::string_view::npos) continue;
    const bool is_define = code.substr(0, at).find("#define") != std::string_view::npos;
    size_t end = code.size();
    if (!is_define) {
      if (code[begin] != '=' || code.substr(begin, 2) == "==") continue;
      begin = code.find_first_not_of(" \t", begin + 1);
      end = code.find_first_of(";,}", begin);
      if (begin == std::string_view::npos || end == std::string_view::npos) continue;
    }
    while (end > begin && std::isspace(static_cast<unsigned char>(code[end - 1])) != 0) --end;
    if (end > begin) return {begin, end};
  }
  return {0, 0};
}

/// What a line with a mark says.
struct MarkedLine {
  TunePoint point;
  size_t begin = 0, end = 0;  ///< of the value in the line
};

std::optional<MarkedLine> read_mark(std::string_view line, const std::string& file, int number) {
  const size_t comment = line.find("//");
  if (comment == std::string_view::npos) return std::nullopt;
  const size_t mark = line.find(kMark, comment);
  if (mark == std::string_view::npos || !trimmed(line.substr(comment + 2, mark - comment - 2)).empty())
    return std::nullopt;
  const size_t open = line.find('{', mark), close = line.find('}', mark);
  MarkedLine result;
  result.point.file = file;
  result.point.line = number;
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    throw Error("{}:{}: \"@tune\" needs a name and values, as in: // @tune kRows {{4, 8, 16}}", file, number);
  result.point.name = trimmed(line.substr(mark + kMark.size(), open - mark - kMark.size()));
  std::string_view list = line.substr(open + 1, close - open - 1);
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const auto value = trimmed(list.substr(0, comma));
    if (!value.empty()) result.point.values.emplace_back(value);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  if (result.point.name.empty() || result.point.values.size() < 2)
    throw Error("{}:{}: \"@tune\" needs a name and at least two values", file, number);
  std::tie(result.begin, result.end) = value_range(line.substr(0, comment), result.point.name);
  if (result.begin == result.end)
    throw Error("{}:{}: \"@tune {}\" stands on a line without \"{} = VALUE;\"; put the mark behind the constant", file,
                number, result.point.name, result.point.name);
  result.point.value = line.substr(result.begin, result.end - result.begin);
  return result;
}

/// Calls use(line, number) for each line, newline not included, and returns the text of what it gives back.
template <typename Use>
std::string map_lines(const std::string& text, Use use) {
  std::string result;
  size_t at = 0;
  for (int number = 1; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    result += use(std::string_view(text).substr(at, end - at), number);
    if (end < text.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

std::vector<base::fs::path> source_files(const base::fs::path& candidate) {
  if (!base::fs::is_directory(candidate)) return {candidate};
  static const std::set<std::string> kEndings = {".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp"};
  std::vector<base::fs::path> files;
  for (const auto& entry : base::fs::recursive_directory_iterator(candidate))
    if (entry.is_regular_file() && kEndings.count(entry.path().extension().string()) != 0)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<TunePoint> find_tune_points(const std::string& text, const std::string& file) {
  std::vector<TunePoint> points;
  map_lines(text, [&](std::string_view line, int number) {
    if (auto mark = read_mark(line, file, number)) points.push_back(std::move(mark->point));
    return line;
  });
  return points;
}

std::vector<TunePoint> read_tune_points(const base::fs::path& candidate) {
  std::vector<TunePoint> points;
  std::map<std::string, const TunePoint*> seen;
  for (const auto& path : source_files(candidate))
    for (auto& point : find_tune_points(base::read_file(path), path.string())) points.push_back(std::move(point));
  for (const auto& point : points) {
    const auto [at, is_new] = seen.emplace(point.name, &point);
    if (!is_new)
      throw Error("{}:{}: \"@tune {}\" is already used in {}:{}; give each tuned constant a name of its own",
                  point.file, point.line, point.name, at->second->file, at->second->line);
  }
  return points;
}

std::string with_settings(const std::string& text, const Settings& settings, const std::string& file) {
  return map_lines(text, [&](std::string_view line, int number) {
    std::string result(line);
    if (const auto mark = read_mark(line, file, number)) {
      const auto wanted = settings.find(mark->point.name);
      if (wanted != settings.end()) result.replace(mark->begin, mark->end - mark->begin, wanted->second);
    }
    return result;
  });
}

void write_settings(const base::fs::path& candidate, const Settings& settings) {
  for (const auto& path : source_files(candidate)) {
    const std::string before = base::read_file(path);
    const std::string after = with_settings(before, settings, path.string());
    if (after != before) base::write_file_atomically(path, after);
  }
}

}  // namespace ks::agents
