#include "core/record.h"

#include <array>
#include <utility>

namespace ks::core {
namespace {

constexpr std::array<std::pair<Verdict, const char*>, 8> kVerdicts = {{{Verdict::kCorrect, "correct"},
                                                                       {Verdict::kWrong, "wrong"},
                                                                       {Verdict::kCheat, "cheat"},
                                                                       {Verdict::kSuspect, "suspect"},
                                                                       {Verdict::kCrash, "crash"},
                                                                       {Verdict::kTimeout, "timeout"},
                                                                       {Verdict::kUnsupported, "unsupported"},
                                                                       {Verdict::kNotRun, "not_run"}}};

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T>
std::optional<T> optional_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->template get<T>();
}

template <typename T>
Json map_json(const std::map<std::string, std::optional<T>>& values) {
  Json result = Json::object();
  for (const auto& [name, value] : values) result[name] = or_null(value);
  return result;
}

template <typename T>
std::map<std::string, std::optional<T>> map_at(const Json& object, const char* key) {
  std::map<std::string, std::optional<T>> result;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return result;
  for (const auto& [name, value] : found->items())
    result[name] = value.is_null() ? std::nullopt : std::optional<T>(value.template get<T>());
  return result;
}

Json error_json(const std::optional<RowError>& error) {
  if (!error) return nullptr;
  return Json{{"worst", error->worst}, {"mean", error->mean}, {"limit", error->limit}};
}

std::optional<RowError> error_from(const Json& object) {
  const auto found = object.find("error");
  if (found == object.end() || found->is_null()) return std::nullopt;
  const auto number = [&](const char* key) {
    return (*found)[key].is_null() ? std::numeric_limits<double>::infinity() : (*found)[key].get<double>();
  };
  return RowError{number("worst"), number("mean"), number("limit")};
}

Json side_verdict(const Side& side) {
  return Json{{"verdict", verdict_name(side.verdict)},  {"reason", side.reason},
              {"error", error_json(side.error)},        {"plan_us", or_null(side.plan_us)},
              {"lengths_us", or_null(side.lengths_us)}, {"samples_us", side.samples_us}};
}

Side side_from(const Json& json) {
  Side side;
  side.verdict = parse_verdict(json.at("verdict").get<std::string>());
  side.reason = json.value("reason", "");
  side.error = error_from(json);
  side.plan_us = optional_at<double>(json, "plan_us");
  side.lengths_us = optional_at<double>(json, "lengths_us");
  if (json.contains("samples_us")) side.samples_us = json["samples_us"].get<std::vector<double>>();
  return side;
}

Json scenario_json(const ScenarioResult& result) {
  Json json = {{"id", result.id}, {"name", result.name}, {"category", result.category}};
  json.update(side_verdict(result.candidate));
  json["time_us"] = Json::object();
  json["host_us"] = Json::object();
  json["time_us"]["candidate"] = or_null(result.candidate.time_us);
  json["host_us"]["candidate"] = or_null(result.candidate.host_us);
  json["ratio"] = Json::object();
  json["baselines"] = Json::object();
  for (const auto& [name, side] : result.baselines) {
    json["baselines"][name] = side_verdict(side);
    json["time_us"][name] = or_null(side.time_us);
    json["host_us"][name] = or_null(side.host_us);
  }
  for (const auto& [name, ratio] : result.ratio)
    json["ratio"][name] = {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
  json["bound_us"] = or_null(result.bound_us);
  json["flops"] = or_null(result.flops);
  json["bytes"] = or_null(result.bytes);
  json["values"] = result.values;
  return json;
}

ScenarioResult scenario_from(const Json& json) {
  ScenarioResult result;
  result.id = json.at("id").get<int>();
  result.name = json.at("name").get<std::string>();
  result.category = json.at("category").get<std::string>();
  result.candidate = side_from(json);
  result.candidate.time_us = optional_at<double>(json.at("time_us"), "candidate");
  result.candidate.host_us = optional_at<double>(json.at("host_us"), "candidate");
  for (const auto& [name, side] : json.at("baselines").items()) {
    result.baselines[name] = side_from(side);
    result.baselines[name].time_us = optional_at<double>(json.at("time_us"), name.c_str());
    result.baselines[name].host_us = optional_at<double>(json.at("host_us"), name.c_str());
  }
  for (const auto& [name, ratio] : json.at("ratio").items())
    result.ratio[name] = {ratio.at("value").get<double>(), ratio.at("low").get<double>(),
                          ratio.at("high").get<double>()};
  result.bound_us = optional_at<double>(json, "bound_us");
  result.flops = optional_at<double>(json, "flops");
  result.bytes = optional_at<double>(json, "bytes");
  if (json.contains("values")) result.values = json["values"].get<std::map<std::string, std::string>>();
  return result;
}

Summary summary_from(const Json& json) {
  Summary summary;
  summary.total = json.at("total").get<int>();
  summary.correct = json.at("correct").get<int>();
  summary.geomean = map_at<double>(json, "geomean");
  summary.geomean_low = map_at<double>(json, "geomean_low");
  summary.geomean_high = map_at<double>(json, "geomean_high");
  summary.parity = map_at<int>(json, "parity");
  summary.worst = map_at<double>(json, "worst");
  if (json.contains("aa") && !json["aa"].is_null()) {
    summary.aa_median = optional_at<double>(json["aa"], "median");
    summary.aa_p95 = optional_at<double>(json["aa"], "p95");
  }
  return summary;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  for (const auto& [value, name] : kVerdicts)
    if (value == verdict) return name;
  KS_CHECK(false, "every Verdict is in the table");
  return "";
}

Verdict parse_verdict(const std::string& name) {
  for (const auto& [value, text] : kVerdicts)
    if (name == text) return value;
  throw Error("unknown verdict \"{}\"", name);
}

Json to_json(const Summary& summary) {
  Json json = {{"total", summary.total},
               {"correct", summary.correct},
               {"geomean", map_json(summary.geomean)},
               {"geomean_low", map_json(summary.geomean_low)},
               {"geomean_high", map_json(summary.geomean_high)},
               {"parity", map_json(summary.parity)},
               {"worst", map_json(summary.worst)}};
  json["aa"] = {{"median", or_null(summary.aa_median)}, {"p95", or_null(summary.aa_p95)}};
  return json;
}

Json to_json(const Evaluation& evaluation) {
  Json json = {{"schema", kEvaluationSchema},
               {"operator", evaluation.operator_name},
               {"grid", {{"name", evaluation.grid_name}, {"hash", evaluation.grid_hash}}},
               {"candidate", {{"path", evaluation.candidate_path}, {"hash", evaluation.candidate_hash}}},
               {"device", evaluation.device},
               {"timing", evaluation.timing},
               {"outcome", evaluation.outcome},
               {"outcome_reason", evaluation.outcome_reason},
               {"started", evaluation.started},
               {"wall_s", evaluation.wall_s},
               {"stage_s", evaluation.stage_s},
               {"summary", to_json(evaluation.summary)}};
  json["summary"]["by_category"] = Json::object();
  for (const auto& [category, summary] : evaluation.by_category)
    json["summary"]["by_category"][category] = to_json(summary);
  json["scenarios"] = Json::array();
  for (const auto& result : evaluation.scenarios) json["scenarios"].push_back(scenario_json(result));
  json["provenance"] = evaluation.provenance;
  json["build"] = evaluation.build;
  return json;
}

Evaluation evaluation_from_json(const Json& json, const std::string& origin) {
  const auto schema = base::require<std::string>(json, "schema", origin);
  if (schema != kEvaluationSchema)
    throw Error("{}: schema \"{}\" where \"{}\" is expected", origin, schema, kEvaluationSchema);
  try {
    Evaluation evaluation;
    evaluation.operator_name = json.at("operator").get<std::string>();
    evaluation.grid_name = json.at("grid").at("name").get<std::string>();
    evaluation.grid_hash = json.at("grid").at("hash").get<std::string>();
    evaluation.candidate_path = json.at("candidate").at("path").get<std::string>();
    evaluation.candidate_hash = json.at("candidate").at("hash").get<std::string>();
    evaluation.device = json.at("device").get<std::string>();
    evaluation.timing = json.value("timing", "");
    evaluation.outcome = json.at("outcome").get<std::string>();
    evaluation.outcome_reason = json.value("outcome_reason", "");
    evaluation.started = json.value("started", 0.0);
    evaluation.wall_s = json.value("wall_s", 0.0);
    if (json.contains("stage_s")) evaluation.stage_s = json["stage_s"].get<std::map<std::string, double>>();
    evaluation.summary = summary_from(json.at("summary"));
    if (json["summary"].contains("by_category"))
      for (const auto& [category, summary] : json["summary"]["by_category"].items())
        evaluation.by_category[category] = summary_from(summary);
    for (const auto& scenario : json.at("scenarios")) evaluation.scenarios.push_back(scenario_from(scenario));
    evaluation.provenance = json.value("provenance", Json::object());
    evaluation.build = json.value("build", Json::object());
    return evaluation;
  } catch (const nlohmann::json::exception& e) {
    throw Error("{}: malformed evaluation record ({})", origin, e.what());
  }
}

Evaluation read_evaluation(const base::fs::path& path) {
  return evaluation_from_json(base::read_json_file(path), path.string());
}

void write_evaluation(const Evaluation& evaluation, const base::fs::path& path) {
  base::write_file_atomically(path, to_json(evaluation).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace ks::core
