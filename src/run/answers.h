// What an agent did after a question: the `answer` events. A question is looked back on once two evaluations followed
// it, or when the run ends. It counts as answered where its agent then did one of these:
//   took it up     an evaluation whose memo names the scenario in focus as what was worked on
//   measured       a profiler, a benchmark, a disassembly or another command that printed a number not seen before
//   said           a message with a number that no tool, message or fact had shown before
// Everything is read from the trace, so a resumed run goes on where it stopped.
#pragma once

#include <map>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "trace/trace_reader.h"

namespace ks::run {

/// Follows a trace and says which questions can be looked back on.
class AnswerWatch {
 public:
  explicit AnswerWatch(const base::fs::path& trace) : reader_(trace) {}

  /// Bodies of `answer` events, in the order of their questions: those that two evaluations followed, at the end all.
  std::vector<Json> due(bool is_end);

  static constexpr int kEvaluations = 2;

 private:
  /// A question, and what came after it.
  struct Open {
    int64_t seq = 0;
    std::string id, log_id, focus;
    std::vector<int> evaluations;
    std::vector<std::string> changes;
    std::map<std::string, int> tools;
    bool took_focus = false;
    std::string measured, said;  ///< the first new number of a command, of a message
  };
  void take(const trace::Event& event);
  void asked(const trace::Event& event);
  void evaluated(const Json& body);
  void text(const Json& body, const std::string& kind);
  void remember(const Json& value);
  /// The first number of a text that is not known yet; "" where there is none.
  std::string new_number(const std::string& text) const;
  static Json body_of(const Open& open);

  trace::TraceReader reader_;
  std::vector<Open> open_;
  std::map<std::string, std::string> kinds_;  ///< of tool calls, by id; "" for the run's own evaluation
  std::unordered_set<std::string> numbers_;
};

}  // namespace ks::run
