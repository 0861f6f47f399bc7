// What a question costs: signals that follow a record, the choice among the bank's entries, the lint of one message.
#include <benchmark/benchmark.h>

#include "core/record.h"
#include "signals/signal_tracker.h"
#include "steering/lint.h"
#include "steering/select.h"

namespace ks {
namespace {

const core::Evaluation& committed_record() {
  static const core::Evaluation record =
      core::read_evaluation(base::fs::path(KS_SOURCE_DIR) / "results/cpu/attention_cpu_demo.json");
  return record;
}

void FollowEvaluation(benchmark::State& state) {
  signals::SignalTracker tracker;
  int number = 0;
  for (auto _ : state) {
    tracker.on_evaluation(++number, committed_record());
    if (number == 100) {
      state.PauseTiming();
      tracker = signals::SignalTracker();
      number = 0;
      state.ResumeTiming();
    }
  }
}
BENCHMARK(FollowEvaluation)->Unit(benchmark::kMicrosecond);

void ChooseQuestion(benchmark::State& state) {
  const steering::Bank bank = steering::load_bank(steering::bank_folder());
  signals::SignalTracker tracker;
  for (int number = 1; number <= 20; ++number) tracker.on_evaluation(number, committed_record());
  steering::SteeringState moment;
  moment.n_evaluations = 20;
  for (auto _ : state) {
    moment.signals = tracker.current();
    moment.evidence = [&](const std::vector<std::string>& names) { return tracker.evidence(names); };
    benchmark::DoNotOptimize(steering::select_question(bank, moment));
  }
}
BENCHMARK(ChooseQuestion)->Unit(benchmark::kMicrosecond);

void LintQuestion(benchmark::State& state) {
  const std::string question = "Which of the rows that lag behind have something in common that the fast rows lack?";
  for (auto _ : state) benchmark::DoNotOptimize(steering::lint_question(question));
}
BENCHMARK(LintQuestion)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ks
