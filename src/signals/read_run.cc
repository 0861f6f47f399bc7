// Feeding a tracker from files: a run folder, a folder of records, a transcript.
#include <algorithm>

#include "signals/signal_tracker.h"
#include "trace/import.h"
#include "trace/trace_reader.h"

namespace ks::signals {
namespace {

namespace fs = base::fs;

/// NNNN of "evaluations/0012.json"; 0 where the name holds no number.
int number_of(const fs::path& path) {
  const std::string stem = path.stem().string();
  const bool digits = !stem.empty() && stem.size() < 9 &&
                      std::all_of(stem.begin(), stem.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::stoi(stem) : 0;
}

std::vector<fs::path> records_in(const fs::path& folder) {
  std::vector<fs::path> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") records.push_back(entry.path());
  std::sort(records.begin(), records.end());
  return records;
}

bool is_record(const fs::path& path) {
  const std::string text = base::read_file(path);
  return text.find(core::kEvaluationSchema) != std::string::npos;
}

void read_events(const fs::path& run, SignalTracker& tracker) {
  trace::TraceReader reader(run / "trace.jsonl");
  const auto take = [&](const trace::Event& event) {
    tracker.on_event(event);
    if (event.kind != "evaluation") return;
    const auto record = event.body.find("record");
    const auto number = event.body.find("number");
    if (record == event.body.end() || !record->is_string() || number == event.body.end() ||
        !number->is_number_integer())
      return;
    const fs::path file = run / record->get<std::string>();
    if (fs::exists(file)) tracker.on_evaluation(number->get<int>(), core::read_evaluation(file));
  };
  while (auto event = reader.next()) take(*event);
  if (auto event = reader.last()) take(*event);
}

}  // namespace

SignalTracker read_run(const base::fs::path& path) {
  SignalTracker tracker;
  if (fs::is_regular_file(path)) {
    trace::read_transcript(path, [&](trace::Event&& event) { tracker.on_event(event); });
    return tracker;
  }
  if (!fs::is_directory(path)) throw Error("{}: there is no such run, folder of records or transcript", path.string());
  if (fs::exists(path / "trace.jsonl")) {
    read_events(path, tracker);
    return tracker;
  }
  int number = 0;
  for (const auto& file : records_in(fs::is_directory(path / "evaluations") ? path / "evaluations" : path)) {
    if (!is_record(file)) continue;
    const int named = number_of(file);
    number = named > number ? named : number + 1;
    tracker.on_evaluation(number, core::read_evaluation(file));
  }
  if (number == 0)
    throw Error(
        "{}: holds neither a trace.jsonl nor an evaluation record; make one with: kernelseek evaluate CANDIDATE --out "
        "{}/0001.json",
        path.string(), path.string());
  return tracker;
}

}  // namespace ks::signals
