#include "base/json.h"

#include <algorithm>

#include "base/file.h"

namespace ks::base {

Json parse_json(std::string_view text, const std::string& origin) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    const auto upto = text.substr(0, std::min(text.size(), e.byte));
    const auto line = 1 + std::count(upto.begin(), upto.end(), '\n');
    throw Error("{}:{}: malformed JSON ({})", origin, line, e.what());
  }
}

Json read_json_file(const std::string& path) {
  return parse_json(read_file(path), path);
}

std::string to_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ks::base
