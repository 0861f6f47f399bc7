// Signals that the trace alone gives: what the agent does, reads, edits and says. Every event costs time in proportion
// to its own text; nothing is looked up in earlier events but in sets and short windows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "signals/edit_look.h"
#include "signals/signal_set.h"
#include "trace/event.h"
#include "trace/source_reread.h"

namespace ks::signals {

/// Something that the agent says and that still stands.
struct Claim {
  std::string sentence;
  std::string origin;
  int evaluations = 0;  ///< made before it
  int edits = 0;        ///< made before it
  int edits_since_evaluation = 0;
  bool has_number = false;
  bool number_is_on_record = false;  ///< a number of it occurs in an earlier tool result or message to the agent
};

/// A question that was asked.
struct AskedQuestion {
  std::string id, category, text, origin;
};

class TraceFollower {
 public:
  void on_event(const trace::Event& event);
  void add_signals(SignalSet& signals) const;

  bool empty() const { return events_ == 0; }
  const std::string& goal() const { return goal_; }
  /// A claim by name ("done", "limit" …) that still stands: no two evaluations, and for "done" no edit, came after it.
  const Claim* standing(const std::string& name) const;
  /// The claim that was made last of those that still stand; null where none does.
  const Claim* latest_claim() const;
  /// The last message of the agent names a cause and a number: its text, else empty.
  const std::string& explanation() const { return explanation_; }
  /// Sizes that added lines of recent edits compare with.
  const std::set<double>& compared_sizes() const { return compared_sizes_; }
  bool has_edit_texts() const { return has_edit_texts_; }
  /// True where the version of that evaluation is kept under a name; unknown where the trace says nothing of it.
  std::optional<bool> is_kept(int evaluation) const;
  const std::string& last_command() const { return last_command_; }
  const std::string& last_outcome() const { return last_outcome_; }
  int command_streak() const { return command_streak_; }
  const std::vector<AskedQuestion>& open_questions() const { return open_; }
  std::optional<int> limit_age_edits() const;
  int evaluations() const { return evaluations_; }

  static constexpr size_t kResultWindow = 50, kToolWindow = 15, kMessageWindow = 10;

 private:
  struct Since {
    int evaluation = 0, bench = 0, test = 0, profile = 0, total = 0, before_last_evaluation = 0;
    void count();
    void evaluated();
  };
  struct Result {
    int64_t chars = 0, own = 0, reference = 0;
  };
  struct OpenCall {
    std::string kind, command;
  };
  struct PastEdit {
    int lines = 0;
    bool literals_only = false;
    uint64_t removed = 0, added = 0;
    bool reverts = false;
  };
  /// Edits by the larger of two counts: the agent's calls, and the driver's own edit events (a version may have both).
  template <typename Member>
  int edits(Member member) const {
    return std::max(by_calls_.*member, by_events_.*member);
  }
  int all_edits() const { return edits(&Since::total); }

  void run_start(const trace::Event& event);
  void message(const trace::Event& event);
  void agent_message(const std::string& text, const std::string& origin);
  void claim(const std::string& name, const std::string& sentence, const std::string& origin);
  void tool_call(const trace::Event& event);
  void tool_result(const trace::Event& event);
  void edit_call(const trace::Event& event);
  void edit_event(const trace::Event& event);
  void past_edit(PastEdit edit);
  void written_path(const std::string& path, const std::string& origin);
  void command_ended(const std::string& command, const std::string& text, bool is_error);
  void evaluation(const trace::Event& event);
  void settings(const Json& memo);
  void remember_numbers(const std::string& text);
  void clock(const trace::Event& event);
  void add_budget(SignalSet& signals) const;
  void add_edits(SignalSet& signals) const;
  void add_tools(SignalSet& signals) const;
  void add_reading(SignalSet& signals) const;
  void add_claims(SignalSet& signals) const;
  void add_talk(SignalSet& signals) const;

  int64_t events_ = 0;
  std::string last_origin_ = "the trace";
  std::string goal_;
  bool has_run_start_ = false, has_judge_hidden_ = false;
  Since by_calls_, by_events_;
  int evaluations_ = 0, steps_since_evaluation_ = 0, tool_calls_ = 0, profiler_runs_ = 0, compactions_ = 0;
  int heldout_ = 0, judgements_ = 0;
  std::string evaluation_origin_, profile_origin_;
  std::map<int, bool> kept_;  ///< evaluations by number: a commit was made of it
  bool saves_since_evaluation_ = false, has_saves_ = false;
  std::deque<std::string> tool_kinds_;
  std::deque<PastEdit> past_edits_;
  bool has_edit_texts_ = false;
  std::optional<std::string> type_change_origin_;
  std::set<double> compared_sizes_;
  std::optional<std::string> bench_edit_origin_;
  std::optional<int> notes_at_;  ///< evaluations made when notes were last written
  trace::SourceReread reread_;
  std::deque<Result> results_;
  Result window_;
  std::unordered_map<std::string, OpenCall> open_calls_;
  std::string last_command_, last_outcome_;
  uint64_t last_outcome_hash_ = 0;
  int command_streak_ = 0, errors_pending_ = 0;
  bool has_commands_ = false, has_research_ = false;
  std::unordered_set<uint64_t> numbers_;
  std::map<std::string, Claim> claims_;
  std::optional<int> first_limit_edits_;
  int first_limit_evaluations_ = 0;
  int64_t agent_messages_ = 0;
  std::deque<int> goal_mentions_;
  bool asks_permission_ = false;
  int options_ = 0, options_estimated_ = 0;
  std::string explanation_, message_origin_;
  std::vector<AskedQuestion> asked_, open_;
  int answers_ = 0;
  std::map<std::string, std::pair<double, double>> budgets_;  ///< used, limit
  double started_ = 0, paused_s_ = 0, last_time_ = 0;
  std::vector<std::string> strategies_;
  std::map<std::string, std::set<std::string>> levels_;  ///< values tried of each offered constant
  std::map<std::string, std::string> settings_;
  std::optional<int> levels_of_change_;
};

/// Number of words in the text that speak of the goal's figure.
int count_goal_mentions(std::string_view text);

/// Lines of a list in a text that speaks of options, and how many of them carry an estimate.
std::pair<int, int> count_options(std::string_view text);

/// True for a file that measures or tests: its name speaks of bench, test, harness, timing or evaluation.
bool is_bench_path(const std::string& path);

}  // namespace ks::signals
