// Judges every trick and every honest control of the zoo (README.md here), and prints how many were accepted or refused
// wrongly. Only this program reaches the counters' switches.
//
//   ks_zoo FOLDER [--out FILE] [NAME…]     exit 0: no false accept, no false reject, every named counter shown to matter
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/toml.h"
#include "evaluator/candidate.h"
#include "evaluator/evaluate.h"

namespace {

using ks::Json;
using ks::core::Evaluation;
using ks::core::Verdict;
namespace base = ks::base;

struct Trick {
  std::string name, what, candidate, counter, construction, same_as, leaves;
  std::vector<std::string> also, expect;
  std::string grid = "demo", filter;
  bool timed = false, honest_time = false;
};

std::vector<std::string> strings(const Json& values, const char* key) {
  return values.value(key, std::vector<std::string>{});
}

std::string candidate_of(const base::fs::path& folder) {
  if (base::fs::exists(folder / "candidate.toml")) return folder.string();
  return (folder / (base::fs::exists(folder / "candidate.cu") ? "candidate.cu" : "candidate.cpp")).string();
}

Trick read_trick(const base::fs::path& folder) {
  const auto file = base::read_toml_file((folder / "cheat.toml").string());
  const Json& v = file.values;
  Trick trick;
  trick.name = folder.filename().string();
  trick.candidate = candidate_of(folder);
  trick.what = v.value("what", "");
  trick.counter = v.value("counter", "");
  trick.construction = v.value("construction", "");
  trick.same_as = v.value("same_as", "");
  trick.leaves = v.value("leaves", "");
  trick.also = strings(v, "also");
  trick.expect = strings(v, "expect");
  trick.grid = v.value("grid", "demo");
  if (trick.grid.ends_with(".tsv")) trick.grid = (folder.parent_path() / trick.grid).string();
  trick.filter = v.value("filter", "");
  trick.timed = v.value("timed", false);
  trick.honest_time = v.value("honest_time", false);
  if (trick.expect.empty() && !trick.honest_time) throw ks::Error("{}: \"expect\" is missing", file.path);
  return trick;
}

Evaluation judge(const std::string& candidate, const std::string& grid, const std::string& filter, bool timed,
                 const std::set<std::string>& off, const std::string& baseline = "none") {
  ks::evaluator::Request request;
  request.candidate = candidate;
  request.device = ks::evaluator::load_candidate(candidate, "").device;
  request.grid = grid;
  request.filter = filter;
  request.baselines = {baseline};
  request.aa = false;
  request.check_only = !timed;
  request.time_budget_s = timed ? 6 : 0;
  request.counters_off.assign(off.begin(), off.end());
  return ks::evaluator::evaluate(request);
}

/// "refused", "build_failed", or the worst verdict: the first that is not correct.
std::string outcome_of(const Evaluation& evaluation) {
  if (evaluation.outcome != "judged") return evaluation.outcome;
  for (const auto& scenario : evaluation.scenarios)
    if (scenario.candidate.verdict != Verdict::kCorrect && scenario.candidate.verdict != Verdict::kUnsupported)
      return ks::core::verdict_name(scenario.candidate.verdict);
  return "correct";
}

std::string reason_of(const Evaluation& evaluation) {
  if (evaluation.outcome != "judged") return evaluation.outcome_reason.substr(0, 300);
  for (const auto& scenario : evaluation.scenarios)
    if (scenario.candidate.verdict != Verdict::kCorrect) return scenario.name + ": " + scenario.candidate.reason;
  return "";
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// How much faster than the honest control it was said to be, at least: the lower end of the ratio's interval. The two
/// were timed in turns, so a busy machine hits both.
double largest_gain(const Evaluation& evaluation) {
  double most = 0;
  for (const auto& scenario : evaluation.scenarios)
    for (const auto& [name, ratio] : scenario.ratio) most = std::max(most, ratio.low);
  return most;
}

constexpr double kNoise = 1.25;  // what two honest binaries may differ by where neighbours take the processor

struct Tally {
  int tricks = 0, controls = 0, false_accepts = 0, false_rejects = 0, idle_counters = 0, shown_counters = 0;
  Json rows = Json::array();                ///< for the record: what each trick and control came to
  Json provenance = Json::object();         ///< of the last evaluation
};

void fail(int& count, const std::string& what) {
  ++count;
  fmt::print("  {}\n", what);
}

/// With every counter that would catch it off, the trick must be accepted: nothing else stops it.
void show_counter(const Trick& trick, const std::set<std::string>& all, Tally& tally) {
  std::set<std::string> others = all;
  others.erase(trick.counter);
  const auto alone = others.empty() ? std::string()
                                    : outcome_of(judge(trick.candidate, trick.grid, trick.filter, trick.timed, others));
  const auto open = judge(trick.candidate, trick.grid, trick.filter, trick.timed, all);
  const std::string without = outcome_of(open);
  if (!alone.empty() && !contains(trick.expect, alone))
    fail(tally.idle_counters, fmt::format("{}: with only {} on it ended in {}", trick.name, trick.counter, alone));
  else if (without != "correct")
    fail(tally.idle_counters, fmt::format("{}: with {} off it still ended in {} ({})", trick.name, fmt::join(all, ", "),
                                          without, reason_of(open)));
  else
    ++tally.shown_counters;
  if (!trick.leaves.empty()) base::fs::remove(trick.leaves);
}

void try_trick(const Trick& trick, const base::fs::path& zoo, Tally& tally) {
  ++tally.tricks;
  if (!trick.leaves.empty()) base::fs::remove(trick.leaves);
  const std::string honest =
      trick.honest_time ? "candidate:" + candidate_of(zoo / "controls/plain") : "none";
  const auto evaluation =
      judge(trick.candidate, trick.grid, trick.filter, trick.timed || trick.honest_time, {}, honest);
  const std::string outcome = outcome_of(evaluation);
  fmt::print("{:<28} {:<12} {}\n", trick.name, outcome, trick.construction.empty() ? trick.counter : "construction");
  tally.rows.push_back({{"name", trick.name},
                        {"what", trick.what},
                        {"outcome", outcome},
                        {"reason", reason_of(evaluation)},
                        {"caught_by", trick.construction.empty() ? trick.counter : trick.construction}});
  tally.provenance = evaluation.provenance;
  if (!trick.leaves.empty() && base::fs::exists(trick.leaves))
    fail(tally.false_accepts, trick.name + ": left " + trick.leaves);
  if (trick.honest_time) {
    const double gain = largest_gain(evaluation);
    if (outcome == "correct" && gain > kNoise)
      fail(tally.false_accepts, fmt::format("{}: {:.2f} times as fast as the honest control", trick.name, gain));
  }
  if (!contains(trick.expect, outcome)) {
    fail(outcome == "correct" ? tally.false_accepts : tally.idle_counters,
         fmt::format("{}: ended in {} ({}), expected {}", trick.name, outcome, reason_of(evaluation),
                     fmt::join(trick.expect, " or ")));
    return;
  }
  if (trick.counter.empty() || !trick.same_as.empty()) return;
  std::set<std::string> all(trick.also.begin(), trick.also.end());
  all.insert(trick.counter);
  const int shown = tally.shown_counters;
  show_counter(trick, all, tally);
  tally.rows.back()["accepted_without_counters"] = tally.shown_counters > shown;
}

void try_control(const base::fs::path& folder, Tally& tally) {
  const auto file = base::read_toml_file((folder / "control.toml").string());
  ++tally.controls;
  std::string grid = file.values.value("grid", "demo");
  if (grid.ends_with(".tsv")) grid = (folder.parent_path().parent_path() / grid).string();
  const auto evaluation = judge(candidate_of(folder), grid, file.values.value("filter", ""), true, {});
  const auto expect = strings(file.values, "expect");
  bool any_correct = false;
  std::string bad = evaluation.outcome == "judged" ? "" : evaluation.outcome + ": " + reason_of(evaluation);
  for (const auto& scenario : evaluation.scenarios) {
    any_correct |= scenario.candidate.verdict == Verdict::kCorrect;
    if (!contains(expect, ks::core::verdict_name(scenario.candidate.verdict)) && bad.empty())
      bad = fmt::format("{}: {} ({})", scenario.name, ks::core::verdict_name(scenario.candidate.verdict),
                        scenario.candidate.reason);
  }
  tally.rows.push_back({{"name", "control " + folder.filename().string()},
                        {"outcome", bad.empty() && any_correct ? "passes" : "refused"},
                        {"reason", bad}});
  fmt::print("{:<28} {}\n", "control " + folder.filename().string(), bad.empty() && any_correct ? "passes" : "REFUSED");
  if (!bad.empty() || !any_correct) fail(tally.false_rejects, folder.filename().string() + ": " + bad);
}

void write_record(const Tally& tally, const std::string& path) {
  const Json record = {{"schema", "kernelseek.cheat_zoo/1"},
                       {"tricks", tally.tricks},
                       {"controls", tally.controls},
                       {"false_accepts", tally.false_accepts},
                       {"false_rejects", tally.false_rejects},
                       {"counters_shown", tally.shown_counters},
                       {"counters_idle", tally.idle_counters},
                       {"rows", tally.rows},
                       {"provenance", tally.provenance}};
  base::write_file_atomically(path, record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

int keep_zoo(const base::fs::path& zoo, const std::vector<std::string>& only, const std::string& out) {
  Tally tally;
  std::vector<base::fs::path> folders;
  for (const auto& entry : base::fs::directory_iterator(zoo)) folders.push_back(entry.path());
  for (const auto& entry : base::fs::directory_iterator(zoo / "controls")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const auto& folder : folders) {
    if (!only.empty() && !contains(only, folder.filename().string())) continue;
    try {
      if (base::fs::exists(folder / "cheat.toml")) try_trick(read_trick(folder), zoo, tally);
      if (base::fs::exists(folder / "control.toml")) try_control(folder, tally);
    } catch (const ks::Error& e) {
      fail(tally.idle_counters, fmt::format("{}: could not be judged: {}", folder.filename().string(), e.what()));
    }
    if (!out.empty()) write_record(tally, out);  // what is known so far outlives an interruption
  }
  fmt::print(
      "figure: cheat zoo: {} tricks, {} controls, {} false accepts, {} false rejects, {} counters shown to matter, {} "
      "not\n",
      tally.tricks, tally.controls, tally.false_accepts, tally.false_rejects, tally.shown_counters,
      tally.idle_counters);
  return tally.false_accepts + tally.false_rejects + tally.idle_counters == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: ks_zoo tests/cheats [--out FILE] [NAME…]\n");
    return 3;
  }
  try {
    std::vector<std::string> names(argv + 2, argv + argc);
    std::string out;
    if (names.size() >= 2 && names[0] == "--out") {
      out = names[1];
      names.erase(names.begin(), names.begin() + 2);
    }
    return keep_zoo(argv[1], names, out);
  } catch (const std::exception& e) {
    fmt::print(stderr, "ks_zoo: {}\n", e.what());
    return 3;
  }
}
