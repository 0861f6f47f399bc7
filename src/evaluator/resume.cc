#include "evaluator/resume.h"

#include <algorithm>

namespace ks::evaluator {
namespace {

/// What of a record's provenance decides whether its times go with another's.
Json machine_of(const core::Evaluation& evaluation) {
  const Json& provenance = evaluation.provenance;
  const Json device = provenance.value("device", Json::object());
  if (evaluation.device != "cuda")
    return {{"processor", provenance.value("processor", "")}, {"threads", provenance.value("threads", 0)}};
  return {{"GPU", device.value("name", "")}, {"driver", device.value("state", Json::object()).value("driver", "")}};
}

}  // namespace

void check_resumable(const core::Evaluation& old, const core::Evaluation& now) {
  const auto same = [](const char* what, const std::string& then, const std::string& today) {
    if (then != today)
      throw Error("--resume: the record is of another {}: \"{}\", here it is \"{}\"; evaluate anew without it", what,
                  then, today);
  };
  same("operator", old.operator_name, now.operator_name);
  same("grid (hash)", old.grid_hash, now.grid_hash);
  same("kind of device", old.device, now.device);
  same("way of timing", old.timing, now.timing);
  same("candidate (hash)", old.candidate_hash, now.candidate_hash);
  if (now.candidate_hash.empty()) same("candidate", old.candidate_path, now.candidate_path);
  const Json then = machine_of(old), today = machine_of(now);
  for (const auto& [key, value] : today.items()) same(key.c_str(), then[key].dump(), value.dump());
}

const core::ScenarioResult* known_result(const core::Evaluation& old, const std::string& scenario) {
  for (const auto& result : old.scenarios)
    if (result.name == scenario && result.candidate.verdict != core::Verdict::kNotRun) return &result;
  return nullptr;
}

bool knows_baseline(const core::ScenarioResult& old, const std::string& baseline) {
  const auto found = old.baselines.find(baseline);
  return found != old.baselines.end() && found->second.verdict != core::Verdict::kNotRun;
}

void merge_baselines(const core::ScenarioResult& old, core::ScenarioResult& fresh, CarriedRatios& carried) {
  for (const auto& [name, side] : old.baselines) {
    if (fresh.baselines.contains(name)) continue;
    fresh.baselines[name] = side;
    if (const auto ratio = old.ratio.find(name); ratio != old.ratio.end()) carried[fresh.name][name] = ratio->second;
  }
}

void carry_whole(const core::ScenarioResult& old, core::Evaluation& now, CarriedRatios& carried) {
  now.scenarios.push_back(old);
  for (const auto& [name, ratio] : old.ratio) carried[old.name][name] = ratio;
}

void keep_the_rest(const core::Evaluation& old, core::Evaluation& now, CarriedRatios& carried) {
  for (const auto& result : old.scenarios) {
    const bool there = std::any_of(now.scenarios.begin(), now.scenarios.end(),
                                   [&](const auto& fresh) { return fresh.name == result.name; });
    if (!there) carry_whole(result, now, carried);
  }
  std::sort(now.scenarios.begin(), now.scenarios.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  Json& earlier = now.provenance["resumed"];
  earlier = old.provenance.value("resumed", Json::array());
  earlier.push_back({{"started", old.started},
                     {"wall_s", old.wall_s},
                     {"revision", old.provenance.value("revision", "")},
                     {"device", old.provenance.value("device", Json::object())}});
  const Json old_versions = old.provenance.value("versions", Json::object());
  for (const auto& [name, versions] : old_versions.items())
    if (!now.provenance["versions"].contains(name)) now.provenance["versions"][name] = versions;
  const Json old_clocks = old.provenance.value("clocks", Json::object());
  for (const auto& [scenario, sides] : old_clocks.items())
    for (const auto& [side, clocks] : sides.items())
      if (!now.provenance["clocks"][scenario].contains(side)) now.provenance["clocks"][scenario][side] = clocks;
}

}  // namespace ks::evaluator
