// The figures of traces as JSON, as tables for the terminal and as a page.
#include <algorithm>

#include "base/clock.h"
#include "base/table.h"
#include "trace/trace_stats.h"

namespace ks::trace {

namespace {

Json json_of(const Counts& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

Json share(int64_t part, int64_t whole) {
  return whole > 0 ? Json(static_cast<double>(part) / static_cast<double>(whole)) : Json();
}

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const Tokens& tokens) {
  const int64_t prompt = tokens.input + tokens.cached + tokens.cache_write;
  return {{"input", tokens.input},   {"cached", tokens.cached},        {"cache_write", tokens.cache_write},
          {"output", tokens.output}, {"reasoning", tokens.reasoning},  {"answer", tokens.output - tokens.reasoning},
          {"prompt", prompt},        {"total", prompt + tokens.output}};
}

Json json_of(const SideStats& side) {
  Json json = Json::object();
  json["tool_calls"] = side.tool_calls;
  json["tool_results"] = side.tool_results;
  json["model_calls"] = side.model_calls;
  json["tools_by_kind"] = json_of(side.tools_by_kind);
  json["tools_by_any_kind"] = json_of(side.tools_by_any_kind);
  json["tools_by_name"] = json_of(side.tools_by_name);
  json["tokens"] = json_of(side.tokens);
  json["tokens_every_line"] = json_of(side.tokens_every_line);
  json["tokens_first_line"] = json_of(side.tokens_first_line);
  return json;
}

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void add_people(const TraceStats& stats, Json& json) {
  json["sessions"] = stats.sessions;
  json["helper_sessions"] = stats.helper_sessions;
  json["helpers_spawned"] = stats.helpers_spawned;
  json["compactions"] = stats.compactions;
  json["human_messages"] = {{"total", stats.human_messages},
                            {"by_source", json_of(stats.human_by_source)},
                            {"chars", stats.human_chars},
                            {"by_class", json_of(stats.human_by_class)},
                            {"questions_by_category", json_of(stats.human_questions_by_category)}};
  json["machine_messages"] = json_of(stats.machine_messages);
  json["questions_by_category"] = json_of(stats.questions_by_category);
  json["agent_messages"] = stats.agent_messages;
}

void add_measures(const TraceStats& stats, Json& json) {
  const RereadFigures& reread = stats.reread;
  json["tool_result_chars"] = reread.result_chars;
  json["own_source_reread"] = {{"chars", reread.own_chars}, {"share", share(reread.own_chars, reread.result_chars)}};
  json["read_tool_reread"] = {{"main_result_chars", reread.main_result_chars},
                              {"by_path_chars", reread.read_path_chars},
                              {"by_path_share", share(reread.read_path_chars, reread.main_result_chars)},
                              {"by_line_chars", reread.read_line_chars},
                              {"by_line_share", share(reread.read_line_chars, reread.main_result_chars)}};
  json["prompt"] = {{"chars", stats.prompt_chars},
                    {"prefetched_chars", stats.prefetched_chars},
                    {"prefetched_share", share(stats.prefetched_chars, stats.prompt_chars)}};
  json["cost_usd"] = json_of(stats.cost_usd);
  json["time"] = {{"first", stats.first_time > 0 ? Json(base::iso8601(stats.first_time)) : Json()},
                  {"last", stats.last_time > 0 ? Json(base::iso8601(stats.last_time)) : Json()},
                  {"span_s", stats.span_s},
                  {"idle_gaps", stats.idle_gaps},
                  {"idle_s", stats.idle_s}};
  json["evaluations"] = stats.evaluations;
  json["plateau"] = {{"champion_step", json_of(stats.champion_step)},
                     {"champion_geomean", json_of(stats.champion_geomean)},
                     {"steps_since", json_of(stats.steps_since_champion)}};
}

Json json_of(const TraceStats& stats) {
  Json json = Json::object();
  json["name"] = stats.name;
  json["traces"] = stats.traces;
  json["formats"] = json_of(stats.formats);
  json["lines"] = stats.lines;
  json["records"] = stats.records;
  json["records_used"] = stats.used;
  json["records_skipped"] = json_of(stats.skipped);
  json["problems"] = json_of(stats.problems);
  json["events"] = stats.events;
  add_people(stats, json);
  const int64_t calls = stats.main.tool_calls + stats.helpers.tool_calls;
  json["tool_calls"] = calls;
  json["tool_calls_per_human_message"] =
      stats.human_messages > 0 ? Json(static_cast<double>(calls) / static_cast<double>(stats.human_messages)) : Json();
  json["main"] = json_of(stats.main);
  json["helpers"] = json_of(stats.helpers);
  add_measures(stats, json);
  return json;
}

std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  const size_t sign = number < 0 ? 1 : 0;
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string percent(int64_t part, int64_t whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * ratio(part, whole)) : "none";
}

std::string listed(const Counts& counts) {
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, count] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, grouped(count));
  return text.empty() ? "none" : text;
}

std::string plateau_text(const TraceStats& stats) {
  if (!stats.champion_step)
    return stats.evaluations > 0 ? "no evaluation was right on every scenario" : "no evaluations in this trace";
  return fmt::format("champion at step {} ({:.3f}x), {} steps since", *stats.champion_step, *stats.champion_geomean,
                     *stats.steps_since_champion);
}

std::string tokens_text(const Tokens& tokens) {
  return fmt::format("{} fresh in, {} cached, {} cache write, {} out{}", grouped(tokens.input), grouped(tokens.cached),
                     grouped(tokens.cache_write), grouped(tokens.output),
                     tokens.reasoning > 0 ? fmt::format(" ({} reasoning)", grouped(tokens.reasoning)) : "");
}

/// Figures as names and texts: the rows of the terminal's list and of the page.
using Rows = std::vector<std::pair<std::string, std::string>>;

void add_content_rows(const TraceStats& stats, Rows& rows) {
  const int64_t calls = stats.main.tool_calls + stats.helpers.tool_calls;
  Counts kinds = stats.main.tools_by_kind;
  for (const auto& [kind, count] : stats.helpers.tools_by_kind) kinds[kind] += count;
  Counts any = stats.main.tools_by_any_kind;
  for (const auto& [kind, count] : stats.helpers.tools_by_any_kind) any[kind] += count;
  const auto row = [&](std::string name, std::string text) { rows.emplace_back(std::move(name), std::move(text)); };
  row("format", listed(stats.formats));
  row("lines, records used",
      fmt::format("{}, {} of {}", grouped(stats.lines), grouped(stats.used), grouped(stats.records)));
  row("records passed over", listed(stats.skipped));
  row("problems", listed(stats.problems));
  row("sessions", fmt::format("{} main, {} of helpers", stats.sessions, stats.helper_sessions));
  row("helpers spawned", grouped(stats.helpers_spawned));
  row("human messages", fmt::format("{} ({})", grouped(stats.human_messages), listed(stats.human_by_source)));
  row("  by class", listed(stats.human_by_class));
  row("  questions by category", listed(stats.human_questions_by_category));
  row("machine messages in the user's place", listed(stats.machine_messages));
  row("questions of the questioner", listed(stats.questions_by_category));
  row("tool calls",
      fmt::format("{} main, {} in helpers", grouped(stats.main.tool_calls), grouped(stats.helpers.tool_calls)));
  row("tool calls per human message",
      stats.human_messages > 0
          ? fmt::format("{:.1f}", static_cast<double>(calls) / static_cast<double>(stats.human_messages))
          : "none");
  row("tools by kind", listed(kinds));
  row("  by any kind", listed(any));
}

void add_measure_rows(const TraceStats& stats, Rows& rows) {
  const RereadFigures& reread = stats.reread;
  const auto row = [&](std::string name, std::string text) { rows.emplace_back(std::move(name), std::move(text)); };
  row("tool-result text", grouped(reread.result_chars) + " characters");
  row("own source read again", percent(reread.own_chars, reread.result_chars));
  row("  read tools only: known path, known line", percent(reread.read_path_chars, reread.main_result_chars) + ", " +
                                                       percent(reread.read_line_chars, reread.main_result_chars));
  row("prompt that was pre-fetched", percent(stats.prefetched_chars, stats.prompt_chars));
  row("model calls",
      fmt::format("{} main, {} in helpers", grouped(stats.main.model_calls), grouped(stats.helpers.model_calls)));
  row("tokens, main", tokens_text(stats.main.tokens));
  row("tokens, helpers", tokens_text(stats.helpers.tokens));
  row("cost", stats.cost_usd ? fmt::format("{:.4f} USD", *stats.cost_usd) : "not in this trace");
  row("time", fmt::format("{:.0f} s, {} idle gaps over {:.0f} s summing {:.0f} s", stats.span_s, stats.idle_gaps,
                          StatsCollector::kIdleSeconds, stats.idle_s));
  row("compactions", grouped(stats.compactions));
  row("plateau", plateau_text(stats));
}

Rows rows_of(const TraceStats& stats) {
  Rows rows;
  add_content_rows(stats, rows);
  add_measure_rows(stats, rows);
  return rows;
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    if (c == '&')
      html += "&amp;";
    else if (c == '<')
      html += "&lt;";
    else if (c == '>')
      html += "&gt;";
    else if (c == '"')
      html += "&quot;";
    else
      html += c;
  }
  return html;
}

std::vector<std::string> overview_row(const TraceStats& stats) {
  const int64_t calls = stats.main.tool_calls + stats.helpers.tool_calls;
  const size_t slash = stats.name.find_last_of('/');
  return {slash == std::string::npos ? stats.name : stats.name.substr(slash + 1),
          stats.formats.size() == 1 ? stats.formats.begin()->first : fmt::format("{} formats", stats.formats.size()),
          grouped(stats.human_messages),
          grouped(calls),
          percent(stats.reread.own_chars, stats.reread.result_chars),
          grouped(stats.main.tokens.output + stats.helpers.tokens.output),
          stats.cost_usd ? fmt::format("{:.2f}", *stats.cost_usd) : "-",
          fmt::format("{:.0f}", stats.span_s)};
}

const std::vector<std::string> kOverviewHeader = {"trace",      "format", "human",  "tool calls", "own source again",
                                                  "tokens out", "USD",    "seconds"};

}  // namespace

Json stats_json(const std::vector<TraceStats>& traces, const TraceStats& total) {
  Json json = Json::object();
  json["schema"] = "kernelseek.trace_stats/1";
  json["traces"] = Json::array();
  for (const TraceStats& stats : traces) json["traces"].push_back(json_of(stats));
  json["total"] = json_of(total);
  return json;
}

std::string stats_table(const std::vector<TraceStats>& traces, const TraceStats& total) {
  std::string text;
  if (traces.size() > 1) {
    base::TextTable overview(kOverviewHeader);
    for (const TraceStats& stats : traces) overview.add(overview_row(stats));
    text = overview.text(base::terminal_width()) + "\n";
  }
  for (const auto& [name, value] : rows_of(traces.size() == 1 ? traces[0] : total))
    text += fmt::format("{:<42}{}\n", name, value);
  return text;
}

std::string stats_html(const std::vector<TraceStats>& traces, const TraceStats& total) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Trace figures</title>\n"
      "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1a1a1a}"
      "table{border-collapse:collapse;width:100%;margin:1rem 0}td,th{border-bottom:1px solid #ddd;padding:.3rem .6rem;"
      "text-align:left;vertical-align:top}th{white-space:nowrap}@media(prefers-color-scheme:dark){body{background:#"
      "16181c;"
      "color:#ddd}td,th{border-color:#333}}</style>\n<h1>Trace figures</h1>\n";
  const auto table = [&](const TraceStats& stats) {
    html += "<table>\n";
    for (const auto& [name, value] : rows_of(stats))
      html += "<tr><th scope=\"row\">" + escaped(name) + "</th><td>" + escaped(value) + "</td></tr>\n";
    html += "</table>\n";
  };
  if (traces.size() > 1) {
    html += "<h2>All " + std::to_string(traces.size()) + " traces</h2>\n";
    table(total);
  }
  for (const TraceStats& stats : traces) {
    html += "<h2>" + escaped(stats.name) + "</h2>\n";
    table(stats);
  }
  return html + "</html>\n";
}

}  // namespace ks::trace
