// What a page shows, as one JSON value (docs/formats/page.md): gathered event by event and record by record, so that a
// report made from files and a page that is watched live show the same. Nothing is run or measured here.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "core/record.h"
#include "signals/history_signals.h"
#include "trace/event.h"
#include "trace/source_reread.h"

namespace ks::report {

/// One evaluation in the chart, and what a question or refusal is compared with.
struct EvaluationPoint {
  int number = 0;
  double time = 0;
  std::string outcome, reason, summary, hash;
  std::optional<double> geomean, low, high, best, worst;
  std::optional<int> parity;
  int correct = 0, total = 0;
  double wall_s = 0;
  bool partial = false;
  std::map<std::string, double> ratios;  ///< by scenario
};

/// A count of something that went wrong with a scenario, over the evaluations.
struct Failure {
  std::string scenario, verdict, reason;
  int first = 0, last = 0, count = 0;
};

class PageData {
 public:
  explicit PageData(std::string title) : title_(std::move(title)) {}

  void on_event(const trace::Event& event);
  void on_evaluation(int number, const core::Evaluation& record);
  /// Lines of the trace that could not be read, by name.
  void on_counters(const trace::Counters& counters) { counters_ = counters; }

  /// schema kernelseek.page/1
  Json json() const;
  bool empty() const { return events_ == 0 && points_.empty(); }

 private:
  /// A tool call or result on the time line.
  struct ToolMark {
    double time = 0;
    int64_t seq = 0;
    int kind = 0;
  };
  struct ReadMark {
    double time = 0;
    int64_t seq = 0;
    double share = 0;
  };

  EvaluationPoint& point(int number);
  void evaluation_event(const trace::Event& event);
  void question(const trace::Event& event);
  void answer(const Json& body);
  void tool_call(const trace::Event& event);
  void tool_result(const trace::Event& event);
  void keep_tables(int number, const core::Evaluation& record);
  void count_failures(int number, const core::Evaluation& record);

  Json headline() const;
  Json chart() const;
  Json questions() const;
  Json failures() const;
  Json trace_part() const;
  Json tool_bins() const;
  Json read_curve() const;

  std::string title_;
  int64_t events_ = 0, last_seq_ = 0;
  double first_time_ = 0, last_time_ = 0;
  Json start_ = Json::object(), end_ = Json::object();
  std::map<int, EvaluationPoint> points_;
  int best_number_ = 0;
  std::pair<int, double> best_rank_ = {-1, 0};
  std::optional<double> best_;
  Json best_table_, latest_table_, provenance_, build_;
  int latest_number_ = 0;
  std::vector<Json> questions_, judgements_, claims_, messages_;
  std::map<std::string, Failure> failures_;
  trace::Counters counters_, kinds_, sessions_;
  trace::Counters choices_;  ///< answers of a questioner's model that were taken, and refused
  std::vector<ToolMark> tools_;
  std::vector<ReadMark> reads_;
  trace::SourceReread reread_;
  std::deque<std::pair<int64_t, int64_t>> read_window_;  ///< characters of a result, and own source among them
  int64_t window_chars_ = 0, window_own_ = 0;
  std::map<std::string, double> budget_;
  int compactions_ = 0;
};

/// The rows of a record as a page shows them.
Json table_json(int number, const core::Evaluation& record);

/// Reads a run folder, an evaluation record, a folder of records, or a transcript in any known format.
/// Throws ks::Error where `path` is none of these.
PageData read_page_data(const base::fs::path& path);

}  // namespace ks::report
