// kernelseek verify RECORD CANDIDATE: does this candidate still earn this record on this machine?
#include <cmath>

#include "base/table.h"
#include "cli/commands.h"
#include "evaluator/evaluate.h"

namespace ks::cli {
namespace {

struct VerifyOptions {
  std::string record, candidate;
  bool json = false;
};

/// What the fresh evaluation lacks of what the record claims; empty if it earns it.
std::vector<std::string> shortfalls(const core::Evaluation& claimed, const core::Evaluation& fresh) {
  std::vector<std::string> result;
  if (fresh.outcome != claimed.outcome)
    result.push_back(fmt::format("outcome is {}, the record says {}", fresh.outcome, claimed.outcome));
  std::map<std::string, const core::ScenarioResult*> by_name;
  for (const auto& scenario : fresh.scenarios) by_name[scenario.name] = &scenario;
  for (const auto& scenario : claimed.scenarios) {
    const auto found = by_name.find(scenario.name);
    if (found == by_name.end()) {
      result.push_back(fmt::format("{}: no longer in grid {}", scenario.name, claimed.grid_name));
    } else if (scenario.candidate.verdict == core::Verdict::kCorrect &&
               found->second->candidate.verdict != core::Verdict::kCorrect) {
      result.push_back(fmt::format("{}: {} ({}), the record says correct", scenario.name,
                                   core::verdict_name(found->second->candidate.verdict),
                                   found->second->candidate.reason));
    }
  }
  for (const auto& [name, low] : claimed.summary.geomean_low) {
    const auto now = fresh.summary.geomean_high.find(name);
    if (!low || now == fresh.summary.geomean_high.end()) continue;
    const double noise = fresh.summary.aa_p95.value_or(0);
    if (!now->second || *now->second * std::exp(noise) < *low)
      result.push_back(fmt::format("geomean vs {} is {}, the record claims at least {:.3f}", name,
                                   now->second ? fmt::format("at most {:.3f}", *now->second) : "undefined", *low));
  }
  return result;
}

void verify_command(const VerifyOptions& options) {
  const auto claimed = core::read_evaluation(options.record);
  evaluator::Request request;
  request.candidate = options.candidate;
  request.operator_name = claimed.operator_name;
  request.grid = claimed.grid_name;
  request.device = claimed.device;
  request.threads = claimed.provenance.value("threads", 0);
  for (const auto& scenario : claimed.scenarios)
    for (const auto& [name, side] : scenario.baselines)
      if (std::find(request.baselines.begin(), request.baselines.end(), name) == request.baselines.end())
        request.baselines.push_back(name);
  if (request.baselines.empty()) request.baselines = {"none"};
  request.check_only = claimed.timing == "none";
  if (claimed.scenarios.size() == 1) request.filter = "/" + claimed.scenarios[0].name + "$";
  const auto fresh = evaluator::evaluate(request);
  const auto missing = shortfalls(claimed, fresh);
  if (options.json) {
    fmt::print("{}\n", Json{{"earned", missing.empty()},
                            {"same_source", fresh.candidate_hash == claimed.candidate_hash},
                            {"shortfalls", missing}}
                           .dump(1));
  } else {
    fmt::print("{}", evaluator::evaluation_table(fresh, base::terminal_width()));
    if (fresh.candidate_hash != claimed.candidate_hash) fmt::print("note: the sources differ from the record's\n");
    for (const auto& line : missing) fmt::print("{}\n", line);
    fmt::print("{}\n", missing.empty() ? "the candidate earns this record" : "the candidate does not earn this record");
  }
  exit_code() = missing.empty() ? kDone : kNotMet;
}

}  // namespace

void add_verify_command(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  auto* command = app.add_subcommand("verify", "Does this candidate still earn this record on this machine?");
  command->footer("Example: kernelseek verify results/cpu/attention_cpu.json kernels/attention_cpu");
  command->add_option("record", options->record, "Evaluation record")->required();
  command->add_option("candidate", options->candidate, "Source file or folder")->required();
  command->add_flag("--json", options->json, "For programs");
  command->callback([options] { verify_command(*options); });
}

}  // namespace ks::cli
