// See trace_stats.h.
#include "trace/trace_stats.h"

#include <algorithm>

namespace ks::trace {

namespace {

void add_counts(Counts& to, const Counts& from) {
  for (const auto& [name, count] : from) to[name] += count;
}

Tokens tokens_of(const Json& body) {
  return {integer_at(body, "input_tokens"), integer_at(body, "cached_tokens"), integer_at(body, "cache_write_tokens"),
          integer_at(body, "output_tokens"), integer_at(body, "reasoning_tokens")};
}

/// Characters inside ``` fences, fences included.
int64_t fenced_chars(std::string_view text) {
  int64_t chars = 0;
  for (size_t at = text.find("```"); at != std::string_view::npos;) {
    const size_t close = text.find("```", at + 3);
    const size_t end = close == std::string_view::npos ? text.size() : close + 3;
    chars += count_chars(text.substr(at, end - at));
    at = text.find("```", end);
  }
  return chars;
}

/// Sources of machine messages that put material before the agent that it did not ask for.
bool is_prefetched(std::string_view source) {
  return source == "injected" || source == "attachment" || source == "meta" || source == "prefetched";
}

}  // namespace

Tokens& Tokens::operator+=(const Tokens& other) {
  input += other.input, cached += other.cached, cache_write += other.cache_write;
  output += other.output, reasoning += other.reasoning;
  return *this;
}

SideStats& SideStats::operator+=(const SideStats& other) {
  tool_calls += other.tool_calls, tool_results += other.tool_results, model_calls += other.model_calls;
  add_counts(tools_by_kind, other.tools_by_kind);
  add_counts(tools_by_any_kind, other.tools_by_any_kind);
  add_counts(tools_by_name, other.tools_by_name);
  tokens += other.tokens, tokens_every_line += other.tokens_every_line, tokens_first_line += other.tokens_first_line;
  return *this;
}

void TraceStats::add(const TraceStats& other) {
  traces += other.traces, lines += other.lines, records += other.records, used += other.used, events += other.events;
  for (const auto& [from, to] : {std::pair{&other.formats, &formats},
                                 {&other.skipped, &skipped},
                                 {&other.problems, &problems},
                                 {&other.human_by_class, &human_by_class},
                                 {&other.human_by_source, &human_by_source},
                                 {&other.machine_messages, &machine_messages},
                                 {&other.human_questions_by_category, &human_questions_by_category},
                                 {&other.questions_by_category, &questions_by_category}})
    add_counts(*to, *from);
  sessions += other.sessions, helper_sessions += other.helper_sessions, helpers_spawned += other.helpers_spawned;
  compactions += other.compactions, human_messages += other.human_messages;
  human_chars += other.human_chars, agent_messages += other.agent_messages;
  main += other.main, helpers += other.helpers;
  reread.result_chars += other.reread.result_chars, reread.own_chars += other.reread.own_chars;
  reread.main_result_chars += other.reread.main_result_chars;
  reread.read_path_chars += other.reread.read_path_chars, reread.read_line_chars += other.reread.read_line_chars;
  prompt_chars += other.prompt_chars, prefetched_chars += other.prefetched_chars;
  if (other.cost_usd) cost_usd = cost_usd.value_or(0) + *other.cost_usd;
  span_s += other.span_s, idle_s += other.idle_s, idle_gaps += other.idle_gaps;
  evaluations += other.evaluations;
  const bool leads = other.champion_geomean && (!champion_geomean || *other.champion_geomean > *champion_geomean);
  if (leads) {
    champion_geomean = other.champion_geomean;
    champion_step = other.champion_step;
    steps_since_champion = other.steps_since_champion;
  }
}

void StatsCollector::add(const Event& event) {
  ++stats_.events;
  if (event.time > 0) times_.push_back(event.time);
  if (event.kind == "session_start") return session_start(event);
  if (!is_helper(event.session)) main_sessions_.insert(event.session);
  if (event.kind == "message") return message(event);
  if (event.kind == "tool_call") return tool_call(event);
  if (event.kind == "tool_result") {
    ++side(event.session).tool_results;
    const Json& text = value_at(event.body, "text");
    if (text.is_string())
      reread_.result(text_at(event.body, "id"), text.get_ref<const std::string&>(), !is_helper(event.session));
    return;
  }
  if (event.kind == "usage") return usage(event);
  if (event.kind == "evaluation") return evaluation(event);
  if (event.kind == "compaction") ++stats_.compactions;
  if (event.kind == "question") ++stats_.questions_by_category[text_at(event.body, "category")];
}

void StatsCollector::session_start(const Event& event) {
  if (text_at(event.body, "parent").empty()) {
    main_sessions_.insert(event.session);
  } else if (!main_sessions_.contains(event.session)) {
    helper_sessions_.insert(event.session);
  }
}

void StatsCollector::message(const Event& event) {
  const std::string role = text_at(event.body, "role");
  const Json& json = value_at(event.body, "text");
  const std::string text = json.is_string() ? json.get<std::string>() : "";
  if (role == "agent") {
    if (text_at(event.body, "source") != "thinking") ++stats_.agent_messages;
    return;
  }
  if (is_helper(event.session)) {
    ++stats_.machine_messages[text_at(event.body, "source")];
    return;
  }
  const int64_t chars = count_chars(text);
  const Json& told = value_at(event.body, "prefetched_chars");
  if (role != "human") {
    const std::string source = text_at(event.body, "source");
    ++stats_.machine_messages[source];
    if (!told.is_number() && !is_prefetched(source)) return;
    stats_.prompt_chars += chars;
    stats_.prefetched_chars += told.is_number() ? integer_at(event.body, "prefetched_chars") : chars;
    return;
  }
  stats_.prompt_chars += chars;
  stats_.prefetched_chars += told.is_number() ? integer_at(event.body, "prefetched_chars") : fenced_chars(text);
  ++stats_.human_messages;
  stats_.human_chars += chars;
  ++stats_.human_by_source[text_at(event.body, "source")];
  if (!classify_) return;
  const HumanLabels labels = classify_(text);
  for (const std::string& name : labels.classes) ++stats_.human_by_class[name];
  for (const std::string& name : labels.categories) ++stats_.human_questions_by_category[name];
}

void StatsCollector::tool_call(const Event& event) {
  SideStats& stats = side(event.session);
  ++stats.tool_calls;
  const std::string kind = text_at(event.body, "kind"), tool = text_at(event.body, "tool");
  ++stats.tools_by_kind[kind];
  ++stats.tools_by_any_kind[kind];
  ++stats.tools_by_name[tool];
  if (const Json& also = value_at(event.body, "also"); also.is_array())
    for (const Json& other : also)
      if (other.is_string()) ++stats.tools_by_any_kind[other.get<std::string>()];
  if (kind == "helper") ++stats_.helpers_spawned;
  reread_.call(text_at(event.body, "id"), tool, event.body);
}

void StatsCollector::usage(const Event& event) {
  std::string id = text_at(event.body, "id");
  if (id.empty()) id = fmt::format("#{}", event.seq);
  const auto [found, is_new] = model_calls_.try_emplace(event.session + "\n" + id);
  ModelCall& call = found->second;
  call.is_helper = is_helper(event.session);
  if (value_at(event.body, "calls").is_number()) call.calls = integer_at(event.body, "calls");
  if (value_at(event.body, "cost_usd").is_number()) {
    call.cost_usd = number_at(event.body, "cost_usd");
    call.has_cost = true;
  }
  if (!event.body.contains("output_tokens")) return;
  const Tokens tokens = tokens_of(event.body);
  if (!call.has_tokens) call.first = tokens;
  call.has_tokens = true;
  call.last = tokens;
  (call.is_helper ? stats_.helpers : stats_.main).tokens_every_line += tokens;
}

/// Steps are evaluations; the champion is the best geomean among those that are right on every scenario.
void StatsCollector::evaluation(const Event& event) {
  const int64_t step = ++stats_.evaluations;
  const Json& geomean = value_at(event.body, "geomean");
  const bool is_right = integer_at(event.body, "correct") == integer_at(event.body, "total");
  if (geomean.is_number() && is_right &&
      (!stats_.champion_geomean || geomean.get<double>() > *stats_.champion_geomean)) {
    stats_.champion_geomean = geomean.get<double>();
    stats_.champion_step = step;
  }
  if (stats_.champion_step) stats_.steps_since_champion = step - *stats_.champion_step;
}

void StatsCollector::sum_usage() {
  for (const auto& [id, call] : model_calls_) {
    if (call.has_cost) stats_.cost_usd = stats_.cost_usd.value_or(0) + call.cost_usd;
    if (!call.has_tokens) continue;
    SideStats& stats = call.is_helper ? stats_.helpers : stats_.main;
    stats.tokens += call.last;
    stats.tokens_first_line += call.first;
    stats.model_calls += call.calls;
  }
}

void StatsCollector::measure_time() {
  if (times_.empty()) return;
  std::sort(times_.begin(), times_.end());
  stats_.first_time = times_.front();
  stats_.last_time = times_.back();
  stats_.span_s = times_.back() - times_.front();
  for (size_t i = 1; i < times_.size(); ++i) {
    const double gap_s = times_[i] - times_[i - 1];
    if (gap_s <= idle_seconds_) continue;
    ++stats_.idle_gaps;
    stats_.idle_s += gap_s;
  }
}

void StatsCollector::add_report(const ImportReport& report) {
  ++stats_.formats[report.format];
  stats_.lines += report.lines, stats_.records += report.records, stats_.used += report.used;
  add_counts(stats_.skipped, report.skipped);
  add_counts(stats_.problems, report.problems);
}

TraceStats StatsCollector::finish() {
  sum_usage();
  measure_time();
  stats_.traces = 1;
  stats_.sessions = static_cast<int64_t>(main_sessions_.size());
  stats_.helper_sessions = static_cast<int64_t>(helper_sessions_.size());
  stats_.reread = reread_.figures();
  return std::move(stats_);
}

TraceStats stats_of(const TraceFiles& files, const HumanClassifier& classify, const ReadOptions& options) {
  StatsCollector collector(classify);
  collector.add_report(read_transcript(
      files.main, [&](Event&& event) { collector.add(event); }, options));
  for (const base::fs::path& helper : files.helpers)
    collector.add_report(read_transcript(
        helper, [&](Event&& event) { collector.add(event); }, options));
  TraceStats stats = collector.finish();
  stats.name = files.main.string();
  return stats;
}

}  // namespace ks::trace
