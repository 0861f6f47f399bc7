#include "report/page_data.h"

#include <algorithm>
#include <cmath>

#include "report/or_null.h"
#include "trace/importer.h"
#include "trace/tool_kinds.h"

namespace ks::report {
namespace {

using core::Verdict;

constexpr size_t kReadWindow = 50;
constexpr size_t kMostMessages = 400;  ///< of people and of the judge; an agent's own are not shown one by one
constexpr size_t kTextBytes = 1200;

std::optional<double> at(const std::map<std::string, std::optional<double>>& figures, const char* name) {
  const auto found = figures.find(name);
  return found == figures.end() ? std::nullopt : found->second;
}

/// At most kTextBytes, cut between characters.
std::string shortened(const std::string& text) {
  if (text.size() <= kTextBytes) return text;
  size_t end = kTextBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + " …";
}

int kind_index(const std::string& kind) {
  const auto* begin = std::begin(trace::kToolKinds);
  const auto* found = std::find(begin, std::end(trace::kToolKinds), kind);
  return static_cast<int>((found == std::end(trace::kToolKinds) ? found - 1 : found) - begin);
}

Json side_json(const core::Side& side) {
  return {{"verdict", core::verdict_name(side.verdict)},
          {"reason", shortened(side.reason)},
          {"time_us", or_null(side.time_us)}};
}

}  // namespace

Json table_json(int number, const core::Evaluation& record) {
  Json rows = Json::array();
  std::set<std::string> names;
  for (const auto& row : record.scenarios) {
    Json json = {{"name", row.name},
                 {"category", row.category},
                 {"candidate", side_json(row.candidate)},
                 {"host_us", or_null(row.candidate.host_us)},
                 {"bound_us", or_null(row.bound_us)},
                 {"values", row.values}};
    json["error"] = row.candidate.error
                        ? Json{{"worst", row.candidate.error->worst}, {"limit", row.candidate.error->limit}}
                        : Json();
    json["baselines"] = Json::object();
    for (const auto& [name, side] : row.baselines) json["baselines"][name] = side_json(side), names.insert(name);
    json["ratio"] = Json::object();
    for (const auto& [name, ratio] : row.ratio) json["ratio"][name] = {ratio.value, ratio.low, ratio.high};
    rows.push_back(std::move(json));
  }
  const auto summary_json = [](const core::Summary& summary) { return core::to_json(summary); };
  Json categories = Json::object();
  for (const auto& [name, summary] : record.by_category) categories[name] = summary_json(summary);
  return {{"evaluation", number},
          {"operator", record.operator_name},
          {"grid", record.grid_name},
          {"device", record.device},
          {"candidate", record.candidate_path},
          {"hash", record.candidate_hash},
          {"outcome", record.outcome},
          {"reason", shortened(record.outcome_reason)},
          {"started", record.started},
          {"wall_s", record.wall_s},
          {"stage_s", record.stage_s},
          {"timing", record.timing},
          {"baselines", names},
          {"summary", summary_json(record.summary)},
          {"by_category", categories},
          {"rows", rows}};
}

EvaluationPoint& PageData::point(int number) {
  EvaluationPoint& point = points_[number];
  point.number = number;
  return point;
}

void PageData::on_event(const trace::Event& event) {
  ++events_;
  last_seq_ = event.seq;
  if (event.time > 0) {
    if (first_time_ == 0) first_time_ = event.time;
    last_time_ = std::max(last_time_, event.time);
  }
  ++kinds_[event.kind];
  if (!event.session.empty()) ++sessions_[event.session];
  const Json& body = event.body;
  const std::string& kind = event.kind;
  if (kind == "run_start") start_ = body, start_["time"] = event.time;
  if (kind == "run_end") end_ = body, end_["time"] = event.time;
  if (kind == "evaluation") evaluation_event(event);
  if (kind == "question") question(event);
  if (kind == "tool_call") tool_call(event);
  if (kind == "tool_result") tool_result(event);
  if (kind == "compaction") ++compactions_;
  if (kind == "budget" && trace::number_at(body, "limit") > 0)
    budget_[trace::text_at(body, "name")] = trace::number_at(body, "used") / trace::number_at(body, "limit");
  const int evaluations = latest_number_;
  const auto kept = [&](Json json) {
    json["seq"] = event.seq;
    json["time"] = event.time;
    json["after"] = evaluations;
    return json;
  };
  if (kind == "answer") answer(body);
  if (kind == "note" && trace::text_at(body, "what").starts_with("model_")) ++choices_[trace::text_at(body, "what")];
  if (kind == "judge")
    judgements_.push_back(kept({{"decision", trace::text_at(body, "decision")},
                                {"goal", trace::text_at(body, "goal")},
                                {"figures", trace::value_at(body, "figures")},
                                {"reason", shortened(trace::text_at(body, "reason"))},
                                {"question", trace::text_at(body, "question")}}));
  if (kind == "claim")
    claims_.push_back(
        kept({{"text", shortened(trace::text_at(body, "text"))}, {"claims", trace::value_at(body, "claims")}}));
  // A message that carries a question is shown as the question.
  if (kind == "message" && trace::text_at(body, "role") == "human" && trace::text_at(body, "question").empty() &&
      messages_.size() < kMostMessages)
    messages_.push_back(
        kept({{"text", shortened(trace::text_at(body, "text"))}, {"source", trace::text_at(body, "source")}}));
}

void PageData::evaluation_event(const trace::Event& event) {
  const Json& body = event.body;
  const auto number = static_cast<int>(trace::integer_at(body, "number"));
  EvaluationPoint& known = point(number);
  known.time = event.time;
  known.partial = trace::truth_at(body, "partial");
  const Json& memo = trace::value_at(body, "memo");
  if (memo.is_object()) known.summary = shortened(trace::text_at(memo, "change"));
  latest_number_ = std::max(latest_number_, number);
  if (!known.outcome.empty()) return;  // the record said more
  known.outcome = trace::text_at(body, "outcome");
  known.hash = trace::text_at(body, "candidate_hash");
  known.correct = static_cast<int>(trace::integer_at(body, "correct"));
  known.total = static_cast<int>(trace::integer_at(body, "total"));
  if (const double geomean = trace::number_at(body, "geomean"); geomean > 0) known.geomean = geomean;
}

void PageData::question(const trace::Event& event) {
  const Json& body = event.body;
  Json facts = Json::array();
  if (const Json& given = trace::value_at(body, "facts"); given.is_array())
    for (const auto& fact : given) {
      if (fact.is_string()) facts.push_back(fact);
      if (fact.is_object())
        facts.push_back(trace::text_at(fact, "text") +
                        (fact.contains("origin") ? " (" + trace::text_at(fact, "origin") + ")" : ""));
    }
  questions_.push_back({{"id", trace::text_at(body, "id")},
                        {"category", trace::text_at(body, "category")},
                        {"text", shortened(trace::text_at(body, "text"))},
                        {"facts", facts},
                        {"questioner", trace::text_at(body, "questioner")},
                        {"chosen_from", trace::text_at(body, "chosen_from")},
                        {"acts", trace::value_at(body, "acts")},
                        {"focus", trace::text_at(body, "focus")},
                        {"evaluation", trace::integer_at(body, "evaluation")},
                        {"seq", event.seq},
                        {"time", event.time},
                        {"after", latest_number_}});
}

/// What an agent did after a question; of several with one id, the event says which was meant.
void PageData::answer(const Json& body) {
  const auto is_it = [&](const Json& asked) {
    return body.contains("asked") ? asked["seq"] == body["asked"] : asked["id"] == trace::text_at(body, "question");
  };
  const auto found = std::find_if(questions_.rbegin(), questions_.rend(), is_it);
  if (found == questions_.rend()) return;
  Json& asked = *found;
  asked["answered"] = trace::truth_at(body, "answered");
  asked["answer"] = shortened(trace::text_at(body, "evidence"));
  asked["led_to"] = {{"evaluations", trace::value_at(body, "evaluations")},
                     {"tools", trace::value_at(body, "tools")},
                     {"changes", trace::value_at(body, "changes")}};
}

void PageData::tool_call(const trace::Event& event) {
  tools_.push_back({event.time, event.seq, kind_index(trace::text_at(event.body, "kind"))});
  reread_.call(trace::text_at(event.body, "id"), trace::text_at(event.body, "tool"), event.body);
}

void PageData::tool_result(const trace::Event& event) {
  const auto before = reread_.figures();
  reread_.result(trace::text_at(event.body, "id"), trace::text_at(event.body, "text"), true);
  const auto& after = reread_.figures();
  read_window_.emplace_back(after.result_chars - before.result_chars, after.own_chars - before.own_chars);
  window_chars_ += read_window_.back().first;
  window_own_ += read_window_.back().second;
  if (read_window_.size() > kReadWindow) {
    window_chars_ -= read_window_.front().first;
    window_own_ -= read_window_.front().second;
    read_window_.pop_front();
  }
  if (window_chars_ > 0)
    reads_.push_back({event.time, event.seq, static_cast<double>(window_own_) / static_cast<double>(window_chars_)});
}

void PageData::on_evaluation(int number, const core::Evaluation& record) {
  latest_number_ = std::max(latest_number_, number);
  EvaluationPoint& known = point(number);
  known.outcome = record.outcome;
  known.reason = shortened(record.outcome_reason);
  known.hash = record.candidate_hash;
  known.wall_s = record.wall_s;
  if (known.time == 0) known.time = record.started + record.wall_s;
  known.correct = record.summary.correct;
  known.total = record.summary.total;
  known.geomean = at(record.summary.geomean, "fastest");
  known.low = at(record.summary.geomean_low, "fastest");
  known.high = at(record.summary.geomean_high, "fastest");
  known.worst = at(record.summary.worst, "fastest");
  if (const auto parity = record.summary.parity.find("fastest"); parity != record.summary.parity.end())
    known.parity = parity->second;
  for (const auto& row : record.scenarios)
    if (const auto ratio = row.ratio.find("fastest"); ratio != row.ratio.end())
      known.ratios[row.name] = ratio->second.value;
  keep_tables(number, record);
  count_failures(number, record);
}

void PageData::keep_tables(int number, const core::Evaluation& record) {
  const EvaluationPoint& known = points_.at(number);
  provenance_ = record.provenance;
  build_ = record.build;
  latest_table_ = table_json(number, record);
  // More right rows come first, so that a version does not become best by losing its slow ones.
  const std::pair<int, double> rank = {record.summary.correct, known.geomean.value_or(0)};
  if (rank <= best_rank_) return;
  best_rank_ = rank;
  best_number_ = number;
  best_table_ = latest_table_;
}

void PageData::count_failures(int number, const core::Evaluation& record) {
  const auto count = [&](const std::string& scenario, const std::string& verdict, const std::string& reason) {
    Failure& failure = failures_[scenario + '\n' + verdict];
    if (failure.count == 0) failure = {scenario, verdict, "", number, number, 0};
    failure.reason = shortened(reason);
    failure.last = number;
    ++failure.count;
  };
  if (record.outcome != "judged") count("(the candidate)", record.outcome, record.outcome_reason);
  for (const auto& row : record.scenarios) {
    if (row.candidate.verdict != Verdict::kCorrect)
      count(row.name, core::verdict_name(row.candidate.verdict), row.candidate.reason);
    for (const auto& [name, side] : row.baselines)
      if (side.verdict != Verdict::kCorrect && side.verdict != Verdict::kUnsupported &&
          side.verdict != Verdict::kNotRun)
        count(row.name + ", baseline " + name, core::verdict_name(side.verdict), side.reason);
  }
}

}  // namespace ks::report
