// See json_lines.h. The only file that knows simdjson.
#include "trace/json_lines.h"

#define SIMDJSON_EXCEPTIONS 0  // damage in a line is a value here, never an exception
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "trace/line_reader.h"

namespace ks::trace {

namespace od = simdjson::ondemand;

namespace {

static_assert(LineReader::kPadding >= simdjson::SIMDJSON_PADDING);
constexpr int kMaxDepth = 200;

/// Which keys become values.
struct Keys {
  std::span<const std::string_view> keep;  ///< of the top level; empty: all
  std::span<const std::string_view> skip;  ///< below it
};

bool contains(std::span<const std::string_view> keys, std::string_view key) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view one) { return one.size() == key.size() && one == key; });
}

simdjson::error_code convert(od::value value, int depth, const Keys& keys, Json& into);

simdjson::error_code convert_object(od::object object, int depth, const Keys& keys, Json& into) {
  into = Json::object();
  auto& members = into.get_ref<Json::object_t&>();
  constexpr size_t kUsualKeys = 8;
  members.reserve(kUsualKeys);
  for (auto field : object) {
    std::string_view key;
    if (auto error = field.unescaped_key().get(key)) return error;
    if (depth == 0 ? !keys.keep.empty() && !contains(keys.keep, key) : contains(keys.skip, key)) continue;
    od::value value;
    if (auto error = field.value().get(value)) return error;
    members.emplace_back(std::string(key), Json());  // insert() would look through all keys; of twins the first counts
    if (auto error = convert(value, depth + 1, keys, members.back().second)) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code convert_array(od::array array, int depth, const Keys& keys, Json& into) {
  into = Json::array();
  auto& elements = into.get_ref<Json::array_t&>();
  for (auto element : array) {
    od::value value;
    if (auto error = element.get(value)) return error;
    elements.emplace_back();
    if (auto error = convert(value, depth + 1, keys, elements.back())) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code convert_number(od::value value, Json& into) {
  od::number number;
  if (value.get_number().get(number)) {  // beyond 64 bits: as near as a double comes
    double approximate = 0;
    if (auto error = value.get_double().get(approximate)) return error;
    into = approximate;
    return simdjson::SUCCESS;
  }
  if (number.is_int64()) into = number.get_int64();
  if (number.is_uint64()) into = number.get_uint64();
  if (number.is_double()) into = number.get_double();
  return simdjson::SUCCESS;
}

simdjson::error_code convert(od::value value, int depth, const Keys& keys, Json& into) {
  if (depth > kMaxDepth) return simdjson::DEPTH_ERROR;
  od::json_type type{};
  if (auto error = value.type().get(type)) return error;
  switch (type) {
    case od::json_type::object: {
      od::object object;
      if (auto error = value.get_object().get(object)) return error;
      return convert_object(object, depth, keys, into);
    }
    case od::json_type::array: {
      od::array array;
      if (auto error = value.get_array().get(array)) return error;
      return convert_array(array, depth, keys, into);
    }
    case od::json_type::string: {
      std::string_view text;
      if (auto error = value.get_string().get(text)) return error;
      into = text;
      return simdjson::SUCCESS;
    }
    case od::json_type::number:
      return convert_number(value, into);
    case od::json_type::boolean: {
      bool truth = false;
      if (auto error = value.get_bool().get(truth)) return error;
      into = truth;
      return simdjson::SUCCESS;
    }
    case od::json_type::null: {
      bool is_null = false;
      if (auto error = value.is_null().get(is_null)) return error;
      if (!is_null) return simdjson::INCORRECT_TYPE;
      into = nullptr;
      return simdjson::SUCCESS;
    }
  }
  return simdjson::TAPE_ERROR;
}

/// Bytes of the well-formed UTF-8 sequence at the start of `text`; 0 where there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    return first == 0xED && byte(1) >= 0xA0 ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    return first == 0xF4 && byte(1) >= 0x90 ? 0 : 4;
  }
  return 0;
}

int hex_value(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return error == std::errc() && end == digits.data() + digits.size() && digits.size() == 4 ? value : -1;
}

/// Replaces escaped halves of surrogate pairs by \ufffd; the text keeps its length.
std::string repair_surrogates(std::string_view text) {
  std::string repaired(text);
  for (size_t i = 0; i + 1 < repaired.size(); ++i) {
    if (repaired[i] != '\\') continue;
    if (repaired[i + 1] != 'u' || i + 6 > repaired.size()) {
      ++i;
      continue;
    }
    const int unit = hex_value(text.substr(i + 2, 4));
    const bool has_low = text.substr(i + 6, 2) == "\\u" && i + 12 <= text.size() &&
                         (hex_value(text.substr(i + 8, 4)) & ~0x3FF) == 0xDC00;
    const bool is_pair = unit >= 0xD800 && unit < 0xDC00 && has_low;
    if (is_pair) {
      i += 11;
      continue;
    }
    if (unit >= 0xD800 && unit < 0xE000) repaired.replace(i, 6, "\\ufffd");
    i += 5;
  }
  return repaired;
}

/// End (one past) of the balanced object that starts at `begin`; npos where it does not end.
size_t object_end(std::string_view text, size_t begin) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

}  // namespace

struct JsonLineParser::State {
  od::parser parser;
  std::string copy;
};

JsonLineParser::JsonLineParser() : state_(std::make_unique<State>()) {}
JsonLineParser::~JsonLineParser() = default;

JsonLineParser::Result JsonLineParser::try_parse(std::string_view padded, std::span<const std::string_view> keep,
                                                 Json& into) {
  od::document document;
  auto error = state_->parser
                   .iterate(simdjson::padded_string_view(padded.data(), padded.size(),
                                                         padded.size() + simdjson::SIMDJSON_PADDING))
                   .get(document);
  if (error) return error == simdjson::UTF8_ERROR ? Result::kBadUtf8 : Result::kBad;
  const Keys keys{keep, skip_};
  const size_t start = padded.find_first_not_of(" \t\r\n");  // asking for the wrong type spoils the document
  if (start != std::string_view::npos && padded[start] == '{') {
    od::object object;
    if (!(error = document.get_object().get(object))) error = convert_object(object, 0, keys, into);
  } else if (start != std::string_view::npos && padded[start] == '[') {
    od::array array;
    if (!(error = document.get_array().get(array))) error = convert_array(array, 0, keys, into);
  } else {
    return Result::kBad;  // a number or a word is no record
  }
  if (!error) return document.current_location().error() == simdjson::OUT_OF_BOUNDS ? Result::kGood : Result::kTrailing;
  if (error == simdjson::UTF8_ERROR) return Result::kBadUtf8;
  if (error == simdjson::STRING_ERROR) return Result::kBadString;
  return Result::kBad;
}

JsonLineParser::Result JsonLineParser::parse_repaired(std::string_view line, Counters& counters,
                                                      std::span<const std::string_view> keep, Json& into) {
  Result result = try_parse(line, keep, into);
  if (result != Result::kBadUtf8 && result != Result::kBadString) return result;
  std::string text(line);
  if (result == Result::kBadUtf8) {
    text = repair_utf8(text);
    ++counters["invalid_utf8"];
    text.reserve(text.size() + LineReader::kPadding);
    result = try_parse(text, keep, into);
  }
  if (result == Result::kBadString) {
    text = repair_surrogates(text);
    text.reserve(text.size() + LineReader::kPadding);
    result = try_parse(text, keep, into);
    if (result == Result::kGood) ++counters["lone_surrogate"];
  }
  return result;
}

std::optional<Json> JsonLineParser::parse(std::string_view line, Counters& counters,
                                          std::span<const std::string_view> keep) {
  Json value;
  if (parse_repaired(line, counters, keep, value) == Result::kGood) return value;
  ++counters["not_json"];
  return std::nullopt;
}

std::optional<Json> JsonLineParser::parse_unpadded(std::string_view line, Counters& counters,
                                                   std::span<const std::string_view> keep) {
  state_->copy.assign(line);
  state_->copy.reserve(line.size() + LineReader::kPadding);
  return parse(state_->copy, counters, keep);
}

void JsonLineParser::parse_objects(std::string_view line, Counters& counters, std::span<const std::string_view> keep,
                                   const std::function<void(Json&)>& use) {
  Json value;
  if (parse_repaired(line, counters, keep, value) == Result::kGood) {
    if (value.is_object()) return use(value);
    ++counters["not_an_object"];
    return;
  }
  constexpr int kMaxAttempts = 64;  // a line of nothing but brackets must not cost its length squared
  int found = 0, attempts = 0;
  bool is_clean = true;
  for (size_t at = 0; at < line.size() && attempts < kMaxAttempts;) {
    const size_t begin = line.find('{', at);
    if (begin == std::string_view::npos) break;
    ++attempts;
    if (line.find_first_not_of(" \t", at) != begin) is_clean = false;
    const size_t end = object_end(line, begin);
    at = begin + 1;
    if (end == std::string_view::npos) continue;
    std::string copy(line.substr(begin, end - begin));
    copy.reserve(copy.size() + LineReader::kPadding);
    if (parse_repaired(copy, counters, keep, value) != Result::kGood || !value.is_object() || value.empty()) continue;
    ++found;
    at = end;
    use(value);
  }
  ++counters[found == 0 ? "not_json" : found > 1 && is_clean ? "joined_lines" : "damaged_line"];
}

std::optional<Json> parse_json_line(std::string_view padded_line, Counters& counters) {
  thread_local JsonLineParser parser;
  return parser.parse(padded_line, counters);
}

std::string repair_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i, 4));
    repaired.append(length > 0 ? text.substr(i, length) : std::string_view("\xEF\xBF\xBD"));
    i += std::max<size_t>(1, length);
  }
  return repaired;
}

std::string close_truncated(std::string_view text) {
  std::string open;        // the brackets that are open
  std::string saved_open;  // those that were open after the last whole element of an array
  size_t saved = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') open += c == '{' ? '}' : ']';
    if (c != '}' && c != ']') continue;
    if (open.empty() || open.back() != c) break;
    open.pop_back();
    saved = i + 1;
    saved_open = open;
  }
  if (saved == 0) return "";
  std::string closed(text.substr(0, saved));
  closed.append(saved_open.rbegin(), saved_open.rend());
  return closed;
}

}  // namespace ks::trace
