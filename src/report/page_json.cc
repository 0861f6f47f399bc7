// The JSON of a page from what PageData has gathered.
#include <algorithm>
#include <cmath>

#include "report/or_null.h"
#include "report/page_data.h"
#include "trace/tool_kinds.h"

namespace ks::report {
namespace {

constexpr size_t kBins = 120, kCurvePoints = 240;
constexpr int kFollowed = 3;  ///< evaluations after a question in which its effect is looked for

}  // namespace

Json PageData::json() const {
  Json json = {{"schema", "kernelseek.page/1"},
               {"title", title_},
               {"headline", headline()},
               {"run", start_},
               {"end", end_},
               {"evaluations", chart()},
               {"questions", questions()},
               {"judgements", judgements_},
               {"claims", claims_},
               {"messages", messages_},
               {"failures", failures()}};
  json["best"] = best_table_;
  json["latest"] = latest_number_ != best_number_ ? latest_table_ : Json();
  json["provenance"] = provenance_;
  json["build"] = build_;
  json["trace"] = trace_part();
  return json;
}

Json PageData::headline() const {
  Json json = {{"evaluations", points_.size()},   {"best_number", best_number_},
               {"latest_number", latest_number_}, {"questions", questions_.size()},
               {"first_time", first_time_},       {"last_time", last_time_},
               {"model_choices", choices_},       {"budget", budget_}};
  int refused = 0;
  for (const auto& judgement : judgements_) refused += judgement["decision"] != "met";
  json["refusals"] = refused;
  if (const auto found = points_.find(best_number_); found != points_.end()) {
    const auto& best = found->second;
    json["best"] = {{"geomean", or_null(best.geomean)},
                    {"low", or_null(best.low)},
                    {"high", or_null(best.high)},
                    {"worst", or_null(best.worst)},
                    {"parity", or_null(best.parity)},
                    {"correct", best.correct},
                    {"total", best.total}};
  }
  for (const auto& [number, point] : points_) {
    if (!point.geomean || point.partial) continue;
    json["first"] = {{"number", number}, {"geomean", *point.geomean}};
    break;
  }
  return json;
}

Json PageData::chart() const {
  Json list = Json::array();
  std::pair<int, double> rank = {-1, 0};
  std::optional<double> best;
  for (const auto& [number, point] : points_) {
    if (point.geomean && !point.partial && std::pair(point.correct, *point.geomean) > rank)
      rank = {point.correct, *point.geomean}, best = point.geomean;
    list.push_back({{"number", number},
                    {"time", point.time},
                    {"outcome", point.outcome},
                    {"reason", point.reason},
                    {"summary", point.summary},
                    {"geomean", or_null(point.geomean)},
                    {"low", or_null(point.low)},
                    {"high", or_null(point.high)},
                    {"best", or_null(best)},
                    {"correct", point.correct},
                    {"total", point.total},
                    {"partial", point.partial},
                    {"wall_s", point.wall_s}});
  }
  return list;
}

/// What followed a question: the geomean, and the ratio of the scenario in focus, before it and over the next
/// evaluations.
Json PageData::questions() const {
  Json list = Json::array();
  for (Json asked : questions_) {
    const int after = asked["after"];
    const std::string focus = asked["focus"];
    const auto ratio = [&](const EvaluationPoint& point) -> std::optional<double> {
      const auto found = point.ratios.find(focus);
      return found == point.ratios.end() ? std::nullopt : std::optional(found->second);
    };
    std::optional<double> before, best, focus_before, focus_best;
    int followed = 0;
    for (const auto& [number, point] : points_) {
      if (number <= after) {
        if (point.geomean && !point.partial) before = std::max(before.value_or(0), *point.geomean);
        if (const auto value = ratio(point)) focus_before = std::max(focus_before.value_or(0), *value);
      } else if (followed < kFollowed) {
        ++followed;
        if (point.geomean && !point.partial) best = std::max(best.value_or(0), *point.geomean);
        if (const auto value = ratio(point)) focus_best = std::max(focus_best.value_or(0), *value);
      }
    }
    asked["followed"] = {{"evaluations", followed},
                         {"before", or_null(before)},
                         {"best", or_null(best)},
                         {"focus_before", or_null(focus_before)},
                         {"focus_best", or_null(focus_best)}};
    list.push_back(std::move(asked));
  }
  return list;
}

Json PageData::failures() const {
  Json list = Json::array();
  for (const auto& [key, failure] : failures_)
    list.push_back({{"scenario", failure.scenario},
                    {"verdict", failure.verdict},
                    {"reason", failure.reason},
                    {"first", failure.first},
                    {"last", failure.last},
                    {"count", failure.count}});
  return list;
}

Json PageData::trace_part() const {
  if (events_ == 0) return nullptr;
  const auto& read = reread_.figures();
  Json json = {{"events", events_},
               {"kinds", kinds_},
               {"sessions", sessions_.size()},
               {"counters", counters_},
               {"compactions", compactions_},
               {"tool_calls", tools_.size()},
               {"tools", tool_bins()},
               {"reads", read_curve()},
               {"result_chars", read.result_chars},
               {"own_chars", read.own_chars}};
  Json totals = Json::object();
  std::vector<int64_t> counts(std::size(trace::kToolKinds));
  for (const auto& mark : tools_) ++counts[static_cast<size_t>(mark.kind)];
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) totals[std::string(trace::kToolKinds[i])] = counts[i];
  json["by_kind"] = totals;
  return json;
}

/// Calls by kind in equal stretches of time; of events, where the transcript has no times.
Json PageData::tool_bins() const {
  if (tools_.empty()) return nullptr;
  const bool timed = last_time_ > first_time_ &&
                     std::all_of(tools_.begin(), tools_.end(), [](const ToolMark& m) { return m.time > 0; });
  const double from = timed ? first_time_ : 0, to = timed ? last_time_ : static_cast<double>(last_seq_ + 1);
  std::vector<std::vector<int>> bins(kBins, std::vector<int>(std::size(trace::kToolKinds)));
  for (const auto& mark : tools_) {
    const double at = timed ? mark.time : static_cast<double>(mark.seq);
    const auto bin = static_cast<size_t>(std::clamp((at - from) / (to - from) * kBins, 0.0, kBins - 1.0));
    ++bins[bin][static_cast<size_t>(mark.kind)];
  }
  return {{"timed", timed}, {"from", from}, {"to", to}, {"kinds", trace::kToolKinds}, {"bins", bins}};
}

Json PageData::read_curve() const {
  if (reads_.size() < 2) return nullptr;
  const bool timed = last_time_ > first_time_ && reads_.front().time > 0;
  Json points = Json::array();
  const size_t step = std::max<size_t>(1, reads_.size() / kCurvePoints);
  for (size_t i = 0; i < reads_.size(); i += step)
    points.push_back({timed ? reads_[i].time : static_cast<double>(reads_[i].seq), reads_[i].share});
  return {{"timed", timed},
          {"from", timed ? first_time_ : 0},
          {"to", timed ? last_time_ : static_cast<double>(last_seq_ + 1)},
          {"points", points}};
}

}  // namespace ks::report
