// How fast a transcript becomes figures: one of our fixtures, repeated.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include "base/file.h"
#include "trace/import.h"
#include "trace/trace_stats.h"

namespace ks {
namespace {

/// About 8 MB of a Claude Code transcript. Its records are copies of each other and are counted once, as those of a
/// resumed session: reading them is what is measured.
class RepeatedTranscript {
 public:
  RepeatedTranscript() {
    const std::string once =
        base::read_file(base::fs::path(KS_SOURCE_DIR) / "tests/traces/claude-code/transcript.jsonl");
    std::string text;
    while (text.size() < 8 << 20) text += once;
    base::write_file_atomically(path, text);
    bytes = text.size();
  }
  ~RepeatedTranscript() { base::fs::remove(path); }
  const base::fs::path path = base::fs::temp_directory_path() / fmt::format("ks_bench_{}.jsonl", ::getpid());
  size_t bytes = 0;
};

void TraceStats(benchmark::State& state) {
  const RepeatedTranscript transcript;
  for (auto _ : state) {
    trace::StatsCollector collector;
    const auto report =
        trace::read_transcript(transcript.path, [&](const trace::Event& event) { collector.add(event); });
    collector.add_report(report);
    if (collector.finish().lines == 0) state.SkipWithError("nothing was read");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(transcript.bytes));
}
BENCHMARK(TraceStats)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ks
