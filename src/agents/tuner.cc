#include "agents/tuner.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/hash.h"
#include "base/subprocess.h"

namespace ks::agents {
namespace {

constexpr double kDefaultNoise = 0.02;  ///< of a log ratio, where no A/A figure is known
constexpr double kWorst = -1e300;
constexpr size_t kMaxPairs = 4096;
constexpr double kMoves = 2e6, kUnknown = 1e6;  ///< ranks of constants: moves the objective, not known, does little

/// A version that was evaluated.
struct Version {
  Settings settings;
  const EvaluationFigures* figures = nullptr;
};

Settings settings_of(const Json& memo) {
  Settings settings;
  if (memo.is_object() && memo.contains("settings"))
    for (const auto& [name, value] : memo["settings"].items())
      if (value.is_string()) settings[name] = value.get<std::string>();
  return settings;
}

/// Log speed of a scenario: against the fastest baseline where both sides were timed together (which takes the
/// machine's drift out), else from the time alone.
double speed(const ScenarioFigures& scenario) {
  if (scenario.verdict != "correct") return kWorst;
  if (scenario.ratio > 0) return std::log(scenario.ratio);
  return scenario.time_us > 0 ? -std::log(scenario.time_us) : kWorst;
}

bool is_focus(const ScenarioFigures& scenario, const std::string& focus) {
  if (scenario.name == focus) return true;
  const size_t slash = scenario.name.find('/');
  return slash != std::string::npos && scenario.name.substr(slash + 1) == focus;
}

const ScenarioFigures* find(const EvaluationFigures& figures, const std::string& name) {
  for (const auto& scenario : figures.scenarios)
    if (scenario.name == name) return &scenario;
  return nullptr;
}

/// How much faster a version is than the first one: the mean log gain over the scenarios that both were timed on, or
/// over the one in focus. kWorst if it is not right where the first was, or was timed on too few to tell.
double score(const EvaluationFigures& figures, const EvaluationFigures& first, const std::string& focus) {
  double sum = 0;
  int count = 0, wanted = 0;
  for (const auto& before : first.scenarios) {
    if (before.verdict != "correct" || (!focus.empty() && !is_focus(before, focus))) continue;
    ++wanted;
    const ScenarioFigures* now = find(figures, before.name);
    if (now == nullptr || now->verdict == "not_run") continue;
    if (now->verdict != "correct") return kWorst;
    const double gain = speed(*now) - speed(before);
    if (speed(*now) == kWorst || speed(before) == kWorst || (now->ratio > 0) != (before.ratio > 0)) continue;
    sum += gain;
    ++count;
  }
  return count == 0 || count * 2 < wanted ? kWorst : sum / count;
}

double noise_of(const std::vector<Version>& versions) {
  double noise = 0;
  for (const auto& version : versions) noise = std::max(noise, version.figures->aa_p95);
  return noise > 0 ? std::min(noise, 0.1) : kDefaultNoise;
}

/// The versions in the order of their evaluation; those of others (no settings in the memo) are passed over.
std::vector<Version> versions_of(const AgentContext& context) {
  std::vector<Version> versions;
  for (const auto& figures : context.history)
    if (figures.memo.is_object() && figures.memo.contains("settings"))
      versions.push_back({settings_of(figures.memo), &figures});
  return versions;
}

/// The version to start edits from: best in the focus among those that lose at most noise over all scenarios.
const Version* choose_incumbent(const std::vector<Version>& versions, const std::string& focus) {
  const EvaluationFigures& first = *versions.front().figures;
  double best_overall = kWorst;
  for (const auto& version : versions) best_overall = std::max(best_overall, score(*version.figures, first, ""));
  const Version* incumbent = nullptr;
  double best = kWorst;
  for (const auto& version : versions) {
    const double overall = score(*version.figures, first, "");
    if (overall == kWorst || overall < best_overall - noise_of(versions)) continue;
    // A focus that the first version was not right on, or not timed on, ranks nothing.
    const bool has_focus = !focus.empty() && score(first, first, focus) != kWorst;
    const double value = !has_focus ? overall : score(*version.figures, first, focus);
    if (incumbent == nullptr || value > best) {
      incumbent = &version;
      best = value;
    }
  }
  return incumbent;
}

/// The focus of the last message that named one, or was a plain question (which lets go of the focus).
std::string current_focus(const AgentContext& context) {
  for (size_t i = context.messages.size(); i-- > 0;)
    if (!context.messages[i].focus.empty()) return context.messages[i].focus;
  return "";
}

/// How much each constant has moved the objective: the largest difference between versions that differ in it alone.
std::map<std::string, double> influence(const std::vector<Version>& versions, const std::string& focus) {
  std::map<std::string, double> result;
  for (size_t i = 0; i < versions.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const double a = score(*versions[i].figures, *versions[0].figures, focus),
                   b = score(*versions[j].figures, *versions[0].figures, focus);
      if (a == kWorst || b == kWorst) continue;
      std::string changed;
      int count = 0;
      for (const auto& [name, value] : versions[i].settings) {
        const auto other = versions[j].settings.find(name);
        if (other != versions[j].settings.end() && other->second == value) continue;
        changed = name;
        ++count;
      }
      if (count == 1) result[changed] = std::max(result[changed], std::abs(a - b));
    }
  return result;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-") == std::string::npos;
}

/// Values to try for a point: the next ones up and down for numbers, every other one for names.
std::vector<std::string> neighbours(const TunePoint& point, const std::string& value) {
  const auto here = std::find(point.values.begin(), point.values.end(), value);
  const bool ordered = std::all_of(point.values.begin(), point.values.end(), is_number);
  std::vector<std::string> result;
  if (!ordered || here == point.values.end()) {
    for (const auto& other : point.values)
      if (other != value) result.push_back(other);
    return result;
  }
  if (here + 1 != point.values.end()) result.push_back(*(here + 1));
  if (here != point.values.begin()) result.push_back(*(here - 1));
  return result;
}

std::vector<Settings> single_edits(const Settings& from, const std::vector<TunePoint>& points,
                                   const std::map<std::string, double>& influences, uint64_t seed) {
  struct Edit {
    double influence;
    uint64_t coin;
    Settings settings;
  };
  std::vector<Edit> edits;
  for (const auto& point : points) {
    const auto at = from.find(point.name);
    for (const auto& value : neighbours(point, at == from.end() ? point.value : at->second)) {
      Edit edit{kUnknown,
                base::buffer_hash((point.name + "=" + value).data(), point.name.size() + value.size() + 1, seed), from};
      // What moved the objective comes first; a constant that was never moved alone may be the one that matters, so it
      // comes before those known to do little.
      if (const auto known = influences.find(point.name); known != influences.end())
        edit.influence = known->second > kDefaultNoise ? kMoves + known->second : known->second;
      edit.settings[point.name] = value;
      edits.push_back(std::move(edit));
    }
  }
  std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return a.influence != b.influence ? a.influence > b.influence : a.coin < b.coin;
  });
  std::vector<Settings> result;
  for (auto& edit : edits) result.push_back(std::move(edit.settings));
  return result;
}

/// A version from anywhere, drawn by the seed; nothing where draws find only what was tried.
std::optional<Settings> anything_untried(const std::set<Settings>& tried, const std::vector<TunePoint>& points,
                                         uint64_t seed) {
  base::Random random(base::mix64(seed, tried.size()));
  for (size_t draw = 0; draw < kMaxPairs; ++draw) {
    Settings settings;
    for (const auto& point : points) settings[point.name] = point.values[random.below(point.values.size())];
    if (tried.count(settings) == 0) return settings;
  }
  return std::nullopt;
}

/// The first untried version one edit away, else two edits away or anywhere; nothing where all were tried.
std::optional<Settings> untried(const std::vector<Version>& versions, const Settings& from,
                                const std::vector<TunePoint>& points, const std::string& focus, uint64_t seed,
                                bool with_pairs) {
  std::set<Settings> tried;
  for (const auto& version : versions) tried.insert(version.settings);
  const auto influences = influence(versions, focus);
  const auto singles = single_edits(from, points, influences, seed);
  for (const auto& settings : singles)
    if (tried.count(settings) == 0) return settings;
  if (!with_pairs) return std::nullopt;
  size_t looked_at = 0;
  for (const auto& first : singles)
    for (const auto& settings : single_edits(first, points, influences, seed)) {
      if (tried.count(settings) == 0) return settings;
      if (++looked_at > kMaxPairs) break;
    }
  return anything_untried(tried, points, seed);
}

std::string difference(const Settings& from, const Settings& to) {
  std::string text;
  for (const auto& [name, value] : to) {
    const auto old = from.find(name);
    if (old != from.end() && old->second == value) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", name, old == from.end() ? "?" : old->second, value);
  }
  return text.empty() ? "as it lies" : text;
}

Json memo_of(const Settings& settings, const std::string& objective, const std::string& change) {
  Json values = Json::object();
  for (const auto& [name, value] : settings) values[name] = value;
  return {{"settings", std::move(values)}, {"objective", objective}, {"change", change}};
}

TunerPlan make_claim(const Settings& settings, std::string text, std::vector<std::string> claims) {
  TunerPlan plan;
  plan.step.kind = AgentStep::Kind::kClaim;
  plan.step.text = std::move(text);
  plan.step.claims = std::move(claims);
  plan.settings = settings;
  return plan;
}

/// True where the judge has refused since the last evaluation under the present focus: then the search widens.
bool was_refused(const AgentContext& context) {
  return std::any_of(context.messages.begin(), context.messages.end(),
                     [](const AgentMessage& message) { return message.is_refusal; });
}

}  // namespace

TunerPlan plan_next(const AgentContext& context, const std::vector<TunePoint>& points) {
  const auto versions = versions_of(context);
  Settings start;
  for (const auto& point : points) start[point.name] = point.value;
  if (versions.empty()) {
    TunerPlan plan{{AgentStep::Kind::kEvaluate, "evaluating the candidate as it lies"}, start, ""};
    plan.step.memo = memo_of(start, "", "as it lies");
    return plan;
  }
  if (context.evaluations_left <= 0 || context.minutes_left <= 0) {
    const Version* best = choose_incumbent(versions, "");
    return {{AgentStep::Kind::kStop, "the best version lies in the folder"},
            (best ? best : &versions.front())->settings,
            ""};
  }
  const std::string focus = current_focus(context);
  const Version* incumbent = choose_incumbent(versions, focus);
  const Settings best = incumbent != nullptr ? incumbent->settings : versions.front().settings;
  if (context.goal_state == "met")
    return make_claim(best, "The last evaluation meets the goal.", {"done", "goal_reached"});
  if (points.empty())
    return make_claim(best, "The candidate offers no tune points (// @tune NAME {values}); I change nothing else.",
                      {"done"});
  const auto next = untried(versions, best, points, focus, context.seed, was_refused(context));
  if (!next)
    return make_claim(
        best, fmt::format("No untried neighbour is left around the best of {} versions.", versions.size()), {"done"});
  const std::string change = difference(best, *next);
  TunerPlan plan{
      {AgentStep::Kind::kEvaluate, fmt::format("{} (objective: {})", change, focus.empty() ? "all scenarios" : focus)},
      *next,
      focus};
  plan.step.memo = memo_of(*next, focus, change);
  return plan;
}

AgentStep Tuner::next(const AgentContext& context) {
  const base::fs::path candidate = base::fs::path(context.folder) / context.candidate;
  TunerPlan plan = plan_next(context, read_tune_points(candidate));
  write_settings(candidate, plan.settings);
  return plan.step;
}

void Tuner::finish(const AgentContext& context) {
  AgentContext last = context;
  last.evaluations_left = 0;
  (void)next(last);
}

void serve_agent(Agent& agent, int fd) {
  base::Channel channel(fd);
  while (const auto request = channel.receive(-1)) {
    Json answer;
    try {
      answer = to_json(agent.next(context_from_json(request->body)));
    } catch (const std::exception& e) {
      answer = {{"error", e.what()}};
    }
    if (!channel.send(answer)) return;
  }
}

}  // namespace ks::agents
