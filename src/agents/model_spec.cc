#include "agents/model_spec.h"

#include <algorithm>
#include <cstdlib>

#include "base/toml.h"

namespace ks::agents {
namespace {

const std::vector<std::string> kModelKeys = {
    "name",           "wire",        "url",          "url_variable",   "key_variable", "max_output",
    "max_output_key", "attempts",    "first_wait_s", "context_tokens", "silence_s",    "rate_limit_minutes",
    "key_needed",     "prices_from", "price"};
const std::vector<std::string> kPriceKeys = {"input", "cached", "cache_write", "output"};

void check_keys(const base::TomlFile& file, const Json& table, const std::string& prefix,
                const std::vector<std::string>& known) {
  for (const auto& [key, value] : table.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = base::nearest_word(key, known);
    throw Error("{}: unknown key \"{}\"{}", file.where(prefix + key), prefix + key,
                near.empty() ? fmt::format("; known: {}", fmt::join(known, ", "))
                             : fmt::format("; did you mean \"{}\"?", near));
  }
}

/// The price of a model: of the longest name in the table that its own begins with, so that a dated name finds it.
std::optional<Price> price_of(const base::TomlFile& file, const std::string& model) {
  const Json table = base::value_or<Json>(file.values, "price", Json::object());
  std::optional<Price> best;
  size_t length = 0;
  for (const auto& [name, values] : table.items()) {
    check_keys(file, values, "price." + name + ".", kPriceKeys);
    const std::string where = file.where("price." + name);
    Price price{base::require<double>(values, "input", where), 0, 0, base::require<double>(values, "output", where)};
    price.cached = base::value_or(values, "cached", price.input);
    price.cache_write = base::value_or(values, "cache_write", price.input);
    if (std::min({price.input, price.cached, price.cache_write, price.output}) < 0)
      throw Error("{}: a price is at least 0", where);
    // A longer name may only go on with a date or a tag: "gpt-5" is not the price of "gpt-5.4".
    const bool fits = model == name || (model.rfind(name + "-2", 0) == 0) || (model.rfind(name + "@", 0) == 0);
    if (fits && name.size() >= length) best = price, length = name.size();
  }
  return best;
}

std::string from_environment(const std::string& variable) {
  const char* value = variable.empty() ? nullptr : std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

std::vector<std::string> provider_names() {
  std::vector<std::string> names;
  const auto folder = base::project_root() / "data" / "models";
  if (base::fs::is_directory(folder))
    for (const auto& entry : base::fs::directory_iterator(folder))
      if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

ModelSpec read_model(const base::fs::path& path, const std::string& model) {
  const auto file = base::read_toml_file(path.string());
  const Json& values = file.values;
  check_keys(file, values, "", kModelKeys);
  ModelSpec spec;
  spec.file = path.string();
  spec.model = model;
  try {
    spec.provider = base::require<std::string>(values, "name", path.string());
    spec.wire = base::require<std::string>(values, "wire", path.string());
    spec.url = from_environment(base::value_or<std::string>(values, "url_variable", ""));
    if (spec.url.empty()) spec.url = base::value_or<std::string>(values, "url", "");
    spec.key_variable = base::value_or<std::string>(values, "key_variable", "");
    spec.max_output = base::value_or(values, "max_output", spec.max_output);
    spec.max_output_key = base::value_or(values, "max_output_key", spec.max_output_key);
    spec.context_tokens = base::value_or(values, "context_tokens", spec.context_tokens);
    spec.silence_s = base::value_or(values, "silence_s", spec.silence_s);
    spec.attempts = base::value_or(values, "attempts", spec.attempts);
    spec.first_wait_s = base::value_or(values, "first_wait_s", spec.first_wait_s);
    spec.rate_limit_minutes = base::value_or(values, "rate_limit_minutes", spec.rate_limit_minutes);
    spec.price = price_of(file, model);
  } catch (const nlohmann::json::exception& e) {
    throw Error("{}: a key has the wrong type: {}", path.string(), e.what());
  }
  if (spec.wire != "chat" && spec.wire != "responses" && spec.wire != "messages")
    throw Error("{}: \"wire\" must be \"chat\", \"responses\" or \"messages\"", file.where("wire"));
  if (spec.attempts < 1 || spec.silence_s <= 0 || spec.first_wait_s <= 0)
    throw Error("{}: \"attempts\", \"silence_s\" and \"first_wait_s\" must be above 0", path.string());
  while (!spec.url.empty() && spec.url.back() == '/') spec.url.pop_back();
  spec.key = from_environment(spec.key_variable);
  return spec;
}

ModelSpec find_model(const std::string& name, const base::fs::path& folder) {
  const size_t colon = name.find(':');
  const std::string provider = name.substr(0, colon);
  const std::string model = colon == std::string::npos ? "" : name.substr(colon + 1);
  const auto known = provider_names();
  if (provider.empty() || model.empty())
    throw Error("the agent \"http\" needs model = \"PROVIDER:MODEL\", not \"{}\"; providers: {}, or a file of your own",
                name, fmt::join(known, ", "));
  const bool is_file = provider.size() > 5 && provider.compare(provider.size() - 5, 5, ".toml") == 0;
  if (!is_file && std::find(known.begin(), known.end(), provider) == known.end()) {
    const std::string near = base::nearest_word(provider, known);
    throw Error("unknown provider \"{}\"{}; known: {}, or a file of your own, \"PATH.toml:MODEL\"", provider,
                near.empty() ? "" : " (did you mean " + near + "?)", fmt::join(known, ", "));
  }
  ModelSpec spec =
      read_model(is_file ? folder / provider : base::project_root() / "data" / "models" / (provider + ".toml"), model);
  const auto file = base::read_toml_file(spec.file);
  if (spec.url.empty())
    throw Error("{}: no URL; set {}", spec.file,
                base::value_or<std::string>(file.values, "url_variable", "\"url\" in the file"));
  if (spec.key.empty() && !spec.key_variable.empty() && base::value_or(file.values, "key_needed", true))
    throw Error("{}: the key is missing; set {}", spec.file, spec.key_variable);
  return spec;
}

}  // namespace ks::agents
