// The record that the code writes, its JSON schema and its page in docs/formats/ say the same. The checker knows the
// part of JSON Schema that the schema uses, and refuses any other keyword.
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "core/record.h"

namespace ks::report {
namespace {

const std::set<std::string> kKeywords = {"$schema",  "title",      "type",  "additionalProperties",
                                         "required", "properties", "const", "enum",
                                         "minimum",  "items",      "$ref",  "$defs"};

bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == "null" && value.is_null();
}

class Checker {
 public:
  explicit Checker(const Json& schema) : root_(schema) {}

  std::vector<std::string> check(const Json& value) {
    faults_.clear();
    look(value, root_, "");
    return faults_;
  }

 private:
  void fault(const std::string& where, const std::string& what) { faults_.push_back(where + ": " + what); }

  void look(const Json& value, const Json& schema, const std::string& where) {
    for (const auto& [keyword, rule] : schema.items())
      if (!kKeywords.contains(keyword)) fault(where, "the schema uses " + keyword);
    if (schema.contains("$ref"))
      return look(value, root_.at("$defs").at(schema["$ref"].get<std::string>().substr(8)), where);
    if (schema.contains("const") && value != schema["const"]) fault(where, "is not " + schema["const"].dump());
    if (schema.contains("enum")) {
      bool found = false;
      for (const auto& allowed : schema["enum"]) found |= allowed == value;
      if (!found) fault(where, value.dump() + " is none of the words");
    }
    if (schema.contains("type")) look_at_type(value, schema["type"], where);
    if (schema.contains("minimum") && value.is_number() && value.get<double>() < schema["minimum"].get<double>())
      fault(where, "is too small");
    if (value.is_object()) look_inside(value, schema, where);
    if (value.is_array() && schema.contains("items"))
      for (const auto& item : value) look(item, schema["items"], where + "[]");
  }

  void look_at_type(const Json& value, const Json& types, const std::string& where) {
    bool fits = false;
    if (types.is_string())
      fits = has_type(value, types.get<std::string>());
    else
      for (const auto& type : types) fits |= has_type(value, type.get<std::string>());
    if (!fits) fault(where, "has the wrong type: " + value.dump().substr(0, 40));
  }

  void look_inside(const Json& value, const Json& schema, const std::string& where) {
    if (schema.contains("required"))
      for (const auto& key : schema["required"])
        if (!value.contains(key.get<std::string>())) fault(where, "lacks " + key.get<std::string>());
    for (const auto& [key, inner] : value.items()) {
      const std::string path = where + "/" + key;
      if (schema.contains("properties") && schema["properties"].contains(key)) {
        look(inner, schema["properties"][key], path);
      } else if (schema.contains("additionalProperties")) {
        if (schema["additionalProperties"].is_boolean())
          fault(path, "is not documented");
        else
          look(inner, schema["additionalProperties"], path);
      }
    }
  }

  const Json& root_;
  std::vector<std::string> faults_;
};

Json schema() {
  return base::read_json_file((base::project_root() / "docs/formats/evaluation.schema.json").string());
}

/// A record in which every key that the code can write is present.
core::Evaluation full_record() {
  core::Evaluation record;
  record.operator_name = "rmsnorm";
  record.outcome = "judged";
  record.stage_s = {{"check", 1.5}};
  core::ScenarioResult row{.id = 1, .name = "a", .category = "b"};
  row.candidate.verdict = core::Verdict::kCorrect;
  row.candidate.error = core::RowError{0.1, 0.05, 0.2};
  row.candidate.time_us = row.candidate.host_us = row.candidate.plan_us = row.candidate.lengths_us = 3;
  row.candidate.samples_us = {1, 2};
  row.baselines["onednn"] = row.candidate;
  row.ratio["fastest"] = {1, 0.9, 1.1};
  row.bound_us = row.flops = row.bytes = 1;
  row.values = {{"B", "4"}};
  record.scenarios = {row, core::ScenarioResult{.id = 2, .name = "c", .category = "b"}};
  record.summary.total = 2;
  record.summary.geomean["fastest"] = record.summary.worst["fastest"] = 1;
  record.summary.geomean_low["fastest"] = record.summary.geomean_high["fastest"] = std::nullopt;
  record.summary.parity["fastest"] = 1;
  record.summary.aa_median = record.summary.aa_p95 = 0.01;
  record.by_category["b"] = record.summary;
  return record;
}

TEST(EvaluationSchema, HoldsForWhatTheCodeWrites) {
  const Json rules = schema();
  EXPECT_EQ(Checker(rules).check(core::to_json(full_record())), std::vector<std::string>{});
  EXPECT_EQ(Checker(rules).check(core::to_json(core::Evaluation{.outcome = "refused"})), std::vector<std::string>{});
}

TEST(EvaluationSchema, HoldsForARecordedEvaluation) {
  const Json rules = schema();
  int seen = 0;
  for (const auto& entry : base::fs::directory_iterator(base::project_root() / "tests/reports/small_run/evaluations")) {
    EXPECT_EQ(Checker(rules).check(base::read_json_file(entry.path().string())), std::vector<std::string>{})
        << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 2);
}

TEST(EvaluationSchema, RefusesWhatIsNotDocumented) {
  const Json rules = schema();
  const Json good = core::to_json(full_record());
  const auto broken = [&](const auto& change) {
    Json json = good;
    change(json);
    return Checker(rules).check(json).size();
  };
  EXPECT_EQ(broken([](Json& j) { j["extra"] = 1; }), 1u);
  EXPECT_EQ(broken([](Json& j) { j["scenarios"][0]["verdict"] = "fine"; }), 1u);
  EXPECT_EQ(broken([](Json& j) { j["scenarios"][0]["time_us"]["candidate"] = "3"; }), 1u);
  EXPECT_EQ(broken([](Json& j) { j["scenarios"][0].erase("values"); }), 1u);
  EXPECT_EQ(broken([](Json& j) { j["wall_s"] = -1; }), 1u);
  EXPECT_EQ(broken([](Json& j) { j["schema"] = "kernelseek.evaluation/2"; }), 1u);
}

void names_in(const Json& schema, std::set<std::string>& names) {
  if (schema.contains("properties"))
    for (const auto& [name, inner] : schema["properties"].items()) names.insert(name), names_in(inner, names);
  if (schema.contains("$defs"))
    for (const auto& [name, inner] : schema["$defs"].items()) names_in(inner, names);
}

TEST(EvaluationPage, NamesEveryKey) {
  const std::string page = base::read_file(base::project_root() / "docs/formats/evaluation.md");
  std::set<std::string> names;
  names_in(schema(), names);
  EXPECT_GE(names.size(), 40u);
  for (const auto& name : names) {
    bool named = page.find("." + name + "`") != std::string::npos;
    for (const char* end : {"`", ".", "["}) named |= page.find("`" + name + end) != std::string::npos;
    EXPECT_TRUE(named) << name;
  }
}

}  // namespace
}  // namespace ks::report
