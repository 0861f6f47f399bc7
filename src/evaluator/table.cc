// The table that `evaluate` prints: a row a scenario, then what it comes to.
#include "base/table.h"

#include <algorithm>
#include <set>

#include "evaluator/evaluate.h"

namespace ks::evaluator {
namespace {

using core::Verdict;

std::string time_cell(const core::Side& side) {
  if (side.time_us) {
    const std::string text = base::format_time_us(*side.time_us);
    return side.verdict == Verdict::kCorrect ? text : "(" + text + ")";
  }
  return side.verdict == Verdict::kCorrect ? "—" : core::verdict_name(side.verdict);
}

std::string ratio_cell(const core::ScenarioResult& result) {
  const auto found = result.ratio.find("fastest");
  if (found == result.ratio.end()) return "—";
  const auto& ratio = found->second;
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio.value, ratio.low, ratio.high);
}

std::string summary_lines(const core::Summary& summary) {
  std::string text = fmt::format("correct {} of {}\n", summary.correct, summary.total);
  for (const auto& [name, value] : summary.geomean) {
    if (name != "fastest" && !summary.parity.at(name)) continue;
    if (!value) {
      if (name == "fastest" || summary.parity.at(name)) text += fmt::format("geomean vs {:<13} undefined\n", name);
      continue;
    }
    text += fmt::format("geomean vs {:<13} {:.3f} [{:.3f}, {:.3f}]  parity {}  worst {:.3f}\n", name, *value,
                        *summary.geomean_low.at(name), *summary.geomean_high.at(name), *summary.parity.at(name),
                        *summary.worst.at(name));
  }
  if (summary.aa_median)
    text += fmt::format(
        "A/A (the candidate against itself): median |log ratio| {:.2f} %, 95 % within {:.2f} %; "
        "a smaller effect is noise\n",
        100 * *summary.aa_median, 100 * *summary.aa_p95);
  return text;
}

/// The reasons of everything that is not correct, the candidate's first.
std::string reason_lines(const core::Evaluation& evaluation) {
  std::string text;
  for (const auto& result : evaluation.scenarios)
    if (result.candidate.verdict != Verdict::kCorrect && !result.candidate.reason.empty())
      text += fmt::format("{}: {}: {}\n", result.name, core::verdict_name(result.candidate.verdict),
                          result.candidate.reason);
  std::set<std::string> said;
  for (const auto& result : evaluation.scenarios)
    for (const auto& [name, side] : result.baselines)
      if (side.verdict == Verdict::kWrong || side.verdict == Verdict::kCrash || side.verdict == Verdict::kTimeout)
        if (said.insert(name + side.reason).second)
          text +=
              fmt::format("{}: baseline {} {}: {}\n", result.name, name, core::verdict_name(side.verdict), side.reason);
  return text;
}

}  // namespace

std::string evaluation_table(const core::Evaluation& evaluation, size_t width) {
  if (evaluation.outcome == "build_failed")
    return "The candidate does not compile:\n" + evaluation.outcome_reason + "\n";
  if (evaluation.outcome == "refused") return "The candidate is refused: " + evaluation.outcome_reason + "\n";
  std::set<std::string> names;
  bool timed = false;
  for (const auto& result : evaluation.scenarios) {
    for (const auto& [name, side] : result.baselines) names.insert(name);
    timed |= result.candidate.time_us.has_value();
  }
  std::vector<std::string> header = {"scenario", "category", "verdict", "row error"};
  if (timed) header.insert(header.end(), {"time", "vs fastest"});
  header.insert(header.end(), names.begin(), names.end());
  base::TextTable table(header);
  for (const auto& result : evaluation.scenarios) {
    const auto& error = result.candidate.error;
    std::vector<std::string> row = {result.name, result.category, core::verdict_name(result.candidate.verdict),
                                    error ? fmt::format("{:.2g}", error->worst) : "—"};
    if (timed) row.insert(row.end(), {time_cell(result.candidate), ratio_cell(result)});
    for (const auto& name : names) {
      const auto found = result.baselines.find(name);
      row.push_back(found == result.baselines.end() ? "—" : time_cell(found->second));
    }
    table.add(std::move(row));
  }
  return table.text(width) + "\n" + summary_lines(evaluation.summary) + reason_lines(evaluation);
}

}  // namespace ks::evaluator
