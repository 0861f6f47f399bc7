#include "base/toml.h"

#include <toml++/toml.h>

#include <sstream>

#include "base/file.h"

namespace ks::base {
namespace {

Json convert(const toml::node& node, const std::string& key, TomlFile& file) {
  if (!key.empty()) file.lines[key] = static_cast<int>(node.source().begin.line);
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [name, child] : *table) {
      const std::string text(name.str());
      object[text] = convert(child, key.empty() ? text : key + "." + text, file);
    }
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (size_t i = 0; i < array->size(); ++i)
      list.push_back(convert(*array->get(i), fmt::format("{}[{}]", key, i), file));
    return list;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* real = node.as_floating_point()) return real->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  std::ostringstream other;
  node.visit([&](const auto& value) { other << value; });
  return other.str();
}

}  // namespace

std::string TomlFile::where(const std::string& key) const {
  const auto found = lines.find(key);
  return found == lines.end() ? path : fmt::format("{}:{}", path, found->second);
}

TomlFile parse_toml(const std::string& text, const std::string& origin) {
  TomlFile file;
  file.path = origin;
  try {
    const toml::table table = toml::parse(text, origin);
    file.values = convert(table, "", file);
  } catch (const toml::parse_error& e) {
    throw Error("{}:{}: malformed TOML ({})", origin, e.source().begin.line, e.description());
  }
  return file;
}

TomlFile read_toml_file(const std::string& path) {
  return parse_toml(read_file(path), path);
}

std::vector<std::string> strings_at(const TomlFile& file, const std::string& key) {
  const auto found = file.values.find(key);
  if (found == file.values.end()) return {};
  const auto refuse = [&] { return Error("{}: \"{}\" must be a list of strings", file.where(key), key); };
  if (!found->is_array()) throw refuse();
  std::vector<std::string> result;
  for (const auto& entry : *found) {
    if (!entry.is_string()) throw refuse();
    result.push_back(entry.get<std::string>());
  }
  return result;
}

}  // namespace ks::base
