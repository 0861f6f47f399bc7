#include "run/coverage.h"

#include <algorithm>
#include <cmath>

#include "run/asker.h"

namespace ks::run {
namespace {
namespace fs = base::fs;

/// A question in a run, and how many evaluations had been made before it.
struct AskedThere {
  std::string entry;
  size_t after = 0;
  bool is_answered = false;
};

/// How good a version is: rows that are right, then the log of its geometric mean.
using Rank = std::pair<int64_t, double>;

void find_runs(const fs::path& path, std::vector<fs::path>& runs) {
  if (fs::exists(path / "trace.jsonl")) {
    runs.push_back(path);
    return;
  }
  if (!fs::is_directory(path)) return;
  std::vector<fs::path> inside;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_directory() && !entry.is_symlink()) inside.push_back(entry.path());
  std::sort(inside.begin(), inside.end());
  for (const auto& folder : inside) find_runs(folder, runs);
}

/// One run, replayed.
class Replay {
 public:
  Replay(const steering::Bank& bank, const fs::path& run, Coverage& coverage)
      : bank_(bank), feed_(run, 1), coverage_(coverage) {}

  void go(int within) {
    while (const auto event = feed_.step()) {
      if (event->kind == "evaluation") evaluated(event->body);
      if (event->kind == "question") question(event->body);
      if (event->kind == "answer") answer(event->body);
    }
    for (const auto& asked : asked_) count(asked, within);
  }

 private:
  void evaluated(const Json& body) {
    if (base::value_or(body, "partial", false)) return;
    const double geomean = base::value_or(body, "geomean", 0.0);
    ranks_.push_back({base::value_or<int64_t>(body, "correct", 0), geomean > 0 ? std::log(geomean) : -1e9});
    const auto state = feed_.current(false);
    margin_ = std::log1p(2 * state.signals.number("noise_rel").value_or(0));
    ++coverage_.moments;
    const auto selection = steering::select_question(bank_, state, {}, true);
    for (const auto& considered : selection.considered) {
      EntryCoverage& entry = coverage_.entries[considered.question->id];
      ++entry.fired;
      entry.unsayable += !can_be_said(*considered.question, state);
    }
    if (selection.message) ++coverage_.entries[selection.message->log_id].first;
  }

  static bool can_be_said(const steering::Question& question, const steering::SteeringState& state) {
    std::string why;
    const auto message = steering::fill(question, state.signals, steering::gather(question, state.evidence), why);
    return message && steering::lint_message(*message, state.names).empty();
  }

  /// The entry that was sent; what a person wrote, a hint or a neutral word is none.
  void question(const Json& body) {
    const auto id = base::value_or<std::string>(body, "id", "");
    if (bank_.find(id) != nullptr) asked_.push_back({id, ranks_.size(), false});
  }

  void answer(const Json& body) {
    const auto id = base::value_or<std::string>(body, "question", "");
    const auto found =
        std::find_if(asked_.rbegin(), asked_.rend(), [&](const AskedThere& asked) { return asked.entry == id; });
    if (found != asked_.rend()) found->is_answered = base::value_or(body, "answered", false);
  }

  void count(const AskedThere& asked, int within) {
    EntryCoverage& entry = coverage_.entries[asked.entry];
    ++entry.asked;
    entry.answered += asked.is_answered;
    const auto at = ranks_.begin() + static_cast<ptrdiff_t>(asked.after);
    const auto end = ranks_.end() - at > within ? at + within : ranks_.end();
    if (at == ranks_.begin() || at == end) return;
    const Rank before = *std::max_element(ranks_.begin(), at), best = *std::max_element(at, end);
    entry.improved +=
        best.first > before.first || (best.first == before.first && best.second > before.second + margin_);
  }

  const steering::Bank& bank_;
  SteeringFeed feed_;
  Coverage& coverage_;
  std::vector<Rank> ranks_;
  std::vector<AskedThere> asked_;
  double margin_ = 0;
};

}  // namespace

Coverage coverage_of(const steering::Bank& bank, const std::vector<fs::path>& paths, int within) {
  Coverage coverage;
  for (const auto& question : bank.questions) coverage.entries[question.id];
  for (const auto& path : paths) {
    std::vector<fs::path> runs;
    find_runs(path, runs);
    if (runs.empty()) throw Error("{}: holds no run (a folder with a trace.jsonl)", path.string());
    for (const auto& run : runs) {
      Replay(bank, run, coverage).go(within);
      ++coverage.runs;
    }
  }
  return coverage;
}

Json to_json(const Coverage& coverage) {
  Json entries = Json::object();
  for (const auto& [id, entry] : coverage.entries)
    entries[id] = {{"fired", entry.fired}, {"unsayable", entry.unsayable}, {"first", entry.first},
                   {"asked", entry.asked}, {"answered", entry.answered},   {"improved", entry.improved}};
  return {{"runs", coverage.runs}, {"evaluations", coverage.moments}, {"entries", entries}};
}

}  // namespace ks::run
