// The evaluation record (schema kernelseek.evaluation/1): one candidate judged on one grid. docs/formats/evaluation.md
// documents each key; this is the same thing as plain structs, with the conversions to and from JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace ks::core {

/// The outcome of a scenario.
enum class Verdict { kCorrect, kWrong, kCheat, kSuspect, kCrash, kTimeout, kUnsupported, kNotRun };

/// "correct", "wrong", … as records spell it.
const char* verdict_name(Verdict verdict);
/// The verdict of a name; throws ks::Error for an unknown one.
Verdict parse_verdict(const std::string& name);

/// A ratio baseline time / candidate time with its 95 % interval.
struct Ratio {
  double value = 0, low = 0, high = 0;
};

/// Errors of the rows checked, as relative L2 against the oracle.
struct RowError {
  double worst = 0, mean = 0, limit = 0;
};

/// How one implementation did on one scenario.
struct Side {
  Verdict verdict = Verdict::kNotRun;
  std::string reason;
  std::optional<RowError> error;
  std::optional<double> time_us;     ///< median time of one call, device or in-process clock
  std::optional<double> host_us;     ///< median time of one call, eager, host included
  std::vector<double> samples_us;    ///< per-call time of each sample (block), in order
  std::optional<double> plan_us;     ///< ks_plan, once per shape
  std::optional<double> lengths_us;  ///< ks_plan_lengths, counted in time_us where it exists
};

/// One scenario of the record.
struct ScenarioResult {
  int id = 0;
  std::string name;
  std::string category;
  Side candidate;
  std::map<std::string, Side> baselines;      ///< by baseline name
  std::map<std::string, Ratio> ratio;         ///< by baseline name, and "fastest"
  std::optional<double> bound_us;             ///< nothing may be faster than this
  std::optional<double> flops, bytes;         ///< operations and compulsory bytes of one call
  std::map<std::string, std::string> values;  ///< the grid's columns
};

/// Figures over scenarios; absent where undefined.
struct Summary {
  int total = 0, correct = 0;
  std::map<std::string, std::optional<double>> geomean, geomean_low, geomean_high, worst;  ///< by baseline, "fastest"
  std::map<std::string, std::optional<int>> parity;
  std::optional<double> aa_median, aa_p95;  ///< |log ratio| of the same binary against itself
};

/// One candidate judged on one grid.
struct Evaluation {
  std::string operator_name, grid_name, grid_hash;
  std::string candidate_path, candidate_hash;
  std::string device, timing;
  std::string outcome;             ///< "judged", "build_failed", "refused", "could_not_judge"
  std::string outcome_reason;      ///< the compiler's message, the forbidden import …
  double started = 0, wall_s = 0;  ///< seconds since the epoch; seconds
  std::vector<ScenarioResult> scenarios;
  Summary summary;
  std::map<std::string, Summary> by_category;
  std::map<std::string, double> stage_s;  ///< seconds by stage: build, inspect, check, time, …
  Json provenance = Json::object();       ///< device, driver, clocks, compiler, flags, hashes, seed, protections
  Json build = Json::object();            ///< command, log, ptxas report
};

Json to_json(const Evaluation& evaluation);
Json to_json(const Summary& summary);

/// Throws ks::Error naming `origin` and the key where a record is malformed or of another schema.
Evaluation evaluation_from_json(const Json& json, const std::string& origin);

Evaluation read_evaluation(const base::fs::path& path);
void write_evaluation(const Evaluation& evaluation, const base::fs::path& path);

inline constexpr const char* kEvaluationSchema = "kernelseek.evaluation/1";

}  // namespace ks::core
