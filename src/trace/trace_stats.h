// The figures of a trace, computed from its events in one pass. docs/formats/stats.md defines each figure precisely
// enough to recompute it by hand; the names here are those of the JSON there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trace/import.h"
#include "trace/source_reread.h"

namespace ks::trace {

/// What a person's message is, and what it asks about if it asks.
struct HumanLabels {
  std::vector<std::string> classes;     ///< directive, question, approval, correction, goal
  std::vector<std::string> categories;  ///< of questions
};
/// Handed in, so that this folder needs no classifier of its own.
using HumanClassifier = std::function<HumanLabels(const std::string& text)>;

using Counts = std::map<std::string, int64_t>;

/// Tokens by kind; output includes reasoning.
struct Tokens {
  int64_t input = 0, cached = 0, cache_write = 0, output = 0, reasoning = 0;
  Tokens& operator+=(const Tokens& other);
};

/// The figures of one side of a trace: its main sessions, or its helpers.
struct SideStats {
  int64_t tool_calls = 0, tool_results = 0, model_calls = 0;
  Counts tools_by_kind;      ///< each call once
  Counts tools_by_any_kind;  ///< a call counts in every kind that it has
  Counts tools_by_name;
  Tokens tokens;             ///< the last usage of each model call
  Tokens tokens_every_line;  ///< every usage that was recorded, repetitions included
  Tokens tokens_first_line;  ///< the first usage of each model call
  SideStats& operator+=(const SideStats& other);
};

/// All figures of one trace, or of several added up.
struct TraceStats {
  std::string name;
  Counts formats;
  int64_t traces = 0, lines = 0, records = 0, used = 0, events = 0;
  Counters skipped, problems;
  int64_t sessions = 0, helper_sessions = 0, helpers_spawned = 0, compactions = 0;
  int64_t human_messages = 0, human_chars = 0;
  Counts human_by_source, human_by_class, human_questions_by_category, machine_messages, questions_by_category;
  int64_t agent_messages = 0;
  SideStats main, helpers;
  RereadFigures reread;
  int64_t prompt_chars = 0, prefetched_chars = 0;
  std::optional<double> cost_usd;
  double first_time = 0, last_time = 0, span_s = 0, idle_s = 0;
  int64_t idle_gaps = 0;
  int64_t evaluations = 0;
  std::optional<int64_t> champion_step, steps_since_champion;
  std::optional<double> champion_geomean;

  void add(const TraceStats& other);
};

/// Computes the figures of one trace from its events.
class StatsCollector {
 public:
  static constexpr double kIdleSeconds = 300;

  explicit StatsCollector(HumanClassifier classify = {}, double idle_seconds = kIdleSeconds)
      : classify_(std::move(classify)), idle_seconds_(idle_seconds) {}
  void add(const Event& event);
  void add_report(const ImportReport& report);
  TraceStats finish();

 private:
  struct ModelCall {
    Tokens first, last;
    double cost_usd = 0;
    bool has_cost = false, has_tokens = false;
    int64_t calls = 1;
    bool is_helper = false;
  };

  bool is_helper(const std::string& session) const { return helper_sessions_.contains(session); }
  SideStats& side(const std::string& session) { return is_helper(session) ? stats_.helpers : stats_.main; }
  void session_start(const Event& event);
  void message(const Event& event);
  void tool_call(const Event& event);
  void usage(const Event& event);
  void evaluation(const Event& event);
  void sum_usage();
  void measure_time();

  HumanClassifier classify_;
  double idle_seconds_;
  TraceStats stats_;
  SourceReread reread_;
  std::unordered_set<std::string> main_sessions_, helper_sessions_;
  std::unordered_map<std::string, ModelCall> model_calls_;
  std::vector<double> times_;
};

/// Figures of one trace with its helpers' files.
TraceStats stats_of(const TraceFiles& files, const HumanClassifier& classify, const ReadOptions& options = {});

/// schema kernelseek.trace_stats/1
Json stats_json(const std::vector<TraceStats>& traces, const TraceStats& total);
/// For the terminal: the figures of one trace, or the total.
std::string stats_table(const std::vector<TraceStats>& traces, const TraceStats& total);
/// One self-contained page.
std::string stats_html(const std::vector<TraceStats>& traces, const TraceStats& total);

}  // namespace ks::trace
