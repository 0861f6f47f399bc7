// Page data from files: a run, a record, a folder of records, a transcript.
#include <algorithm>

#include "report/page_data.h"
#include "trace/import.h"
#include "trace/trace_reader.h"

namespace ks::report {
namespace {

namespace fs = base::fs;

std::string name_of(const fs::path& path) {
  const fs::path full = fs::absolute(path).lexically_normal();
  return full.has_filename() ? full.filename().string() : full.parent_path().filename().string();
}

PageData read_run(const fs::path& run) {
  PageData page(name_of(run));
  trace::TraceReader reader(run / "trace.jsonl");
  const auto take = [&](const trace::Event& event) {
    page.on_event(event);
    const std::string record = event.kind == "evaluation" ? trace::text_at(event.body, "record") : "";
    if (record.empty() || !fs::exists(run / record)) return;
    page.on_evaluation(static_cast<int>(trace::integer_at(event.body, "number")), core::read_evaluation(run / record));
  };
  while (auto event = reader.next()) take(*event);
  if (auto event = reader.last()) take(*event);
  page.on_counters(reader.counters());
  return page;
}

PageData read_records(const fs::path& folder) {
  PageData page(name_of(folder));
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  int number = 0;
  for (const auto& file : files) {
    const Json json = base::read_json_file(file.string());
    if (!json.is_object() || json.value("schema", "") != core::kEvaluationSchema) continue;
    page.on_evaluation(++number, core::evaluation_from_json(json, file.string()));
  }
  if (page.empty()) throw Error("{}: holds no trace.jsonl and no evaluation record", folder.string());
  return page;
}

bool is_record(const fs::path& path) {
  if (path.extension() != ".json") return false;
  const Json json = base::read_json_file(path.string());
  return json.is_object() && json.value("schema", "") == core::kEvaluationSchema;
}

}  // namespace

PageData read_page_data(const base::fs::path& path) {
  if (fs::is_directory(path)) {
    if (fs::exists(path / "trace.jsonl")) return read_run(path);
    return read_records(fs::is_directory(path / "evaluations") ? path / "evaluations" : path);
  }
  if (!fs::exists(path))
    throw Error("{}: there is no such file or folder; give a run's folder, a record or a transcript", path.string());
  PageData page(name_of(path));
  if (is_record(path)) {
    page.on_evaluation(1, core::read_evaluation(path));
    return page;
  }
  const auto import = trace::read_transcript(path, [&](trace::Event&& event) { page.on_event(event); });
  trace::Counters counters = import.problems;
  page.on_counters(counters);
  return page;
}

}  // namespace ks::report
