// Judges every candidate of tests/verdicts with the evaluator itself and compares what came out with its expect.json.
//
//   ks_verdicts FOLDER [NAME…]     exit 0: every verdict as expected
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "evaluator/evaluate.h"

namespace {

using ks::Json;
namespace base = ks::base;

/// What an evaluation came to, in the words of expect.json.
struct Result {
  std::string outcome, verdict, reason;
};

Result judge(const base::fs::path& folder, const Json& expect) {
  ks::evaluator::Request request;
  const bool is_folder = base::fs::exists(folder / "candidate.toml") || base::fs::exists(folder / "worker.toml");
  request.candidate = is_folder ? folder.string() : (folder / "candidate.cpp").string();
  request.grid = expect.value("grid", "demo");
  request.filter = expect.value("filter", "");
  request.check_only = !expect.value("timed", false);
  request.baselines = {"none"};
  request.aa = false;
  try {
    const auto evaluation = ks::evaluator::evaluate(request);
    if (evaluation.outcome != "judged") return {evaluation.outcome, "", evaluation.outcome_reason};
    const auto& side = evaluation.scenarios.at(0).candidate;
    return {"judged", ks::core::verdict_name(side.verdict), side.reason};
  } catch (const ks::Error& e) {
    return {"error", "", e.what()};
  }
}

/// What differs, "" if nothing.
std::string difference(const Result& result, const Json& expect) {
  const std::string outcome = expect.at("outcome"), verdict = expect.value("verdict", "");
  if (result.outcome != outcome) return fmt::format("outcome {} instead of {}", result.outcome, outcome);
  if (result.verdict != verdict) return fmt::format("verdict {} instead of {}", result.verdict, verdict);
  for (const auto& piece : expect.at("reason"))
    if (result.reason.find(piece.get<std::string>()) == std::string::npos)
      return fmt::format("the reason does not say \"{}\"", piece.get<std::string>());
  return "";
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "ks_verdicts FOLDER [NAME…]\n");
    return 2;
  }
  std::vector<base::fs::path> folders;
  for (const auto& entry : base::fs::directory_iterator(words[1]))
    if (base::fs::exists(entry.path() / "expect.json")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  int judged = 0, failed = 0;
  for (const auto& folder : folders) {
    const std::string name = folder.filename().string();
    if (count > 2 && std::find(words + 2, words + count, name) == words + count) continue;
    const Json expect = base::read_json_file((folder / "expect.json").string());
    const Result result = judge(folder, expect);
    const std::string wrong = difference(result, expect);
    ++judged;
    failed += !wrong.empty();
    fmt::print("{:<28} {} {}\n", name,
               wrong.empty() ? "as expected:" : "WRONG:", result.verdict.empty() ? result.outcome : result.verdict);
    if (!wrong.empty()) fmt::print("  {}: {}\n  it says: {}\n", name, wrong, result.reason);
  }
  fmt::print("figure: verdicts: {} judged, {} not as expected\n", judged, failed);
  return judged > 0 && failed == 0 ? 0 : 1;
}
