// libFuzzer target for the transcript importers: whatever the bytes, nothing may crash, every record must be accounted
// for, and every event must go through the figures and into a line of a trace that can be read again. The importer is
// the one that the environment variable KS_FUZZ_FORMAT names; fuzz/run builds and runs all of them.
#include <cstdlib>
#include <cstring>

#include "trace/import.h"
#include "trace/trace_reader.h"
#include "trace/trace_stats.h"

namespace {

std::string& format() {
  static std::string name;
  return name;
}

void feed_lines(ks::trace::Importer& importer, std::string_view text) {
  std::string padded;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    padded.assign(text.substr(at, end - at));
    const size_t length = padded.size();
    padded.resize(length + 64, '\0');
    importer.line(std::string_view(padded.data(), length));
    at = end + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("KS_FUZZ_FORMAT");
  if (!name || !ks::trace::make_importer(name)) {
    std::fprintf(stderr, "set KS_FUZZ_FORMAT to one of:");
    for (const std::string& known : ks::trace::format_names()) std::fprintf(stderr, " %s", known.c_str());
    std::fprintf(stderr, " gemini-cli-lines\n");
    std::exit(2);
  }
  format() = name;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto importer = ks::trace::make_importer(format());
  ks::trace::SeenRecords seen;
  ks::trace::StatsCollector collector;
  importer->set_seen(&seen);
  importer->set_use([&](ks::trace::Event&& event) {
    collector.add(event);
    KS_CHECK(ks::trace::parse_event(ks::base::to_line(ks::trace::to_json(event))),
             "an event that was written can be read");
  });
  if (importer->is_document()) {
    importer->document(text);
  } else {
    feed_lines(*importer, text);
  }
  importer->finish();
  const ks::trace::ImportReport& report = importer->report();
  int64_t accounted = report.used;
  for (const auto& [name, count] : report.skipped) accounted += count;
  KS_CHECK(accounted == report.records, "every record is used or passed over for a reason");
  collector.add_report(report);
  const auto stats = collector.finish();
  KS_CHECK(!ks::base::to_line(ks::trace::stats_json({stats}, stats)).empty(), "figures can be printed");
  return 0;
}
