// kernelseek trace import, stats, show, query, export: transcripts of any agent, read.
#include "cli/trace_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/hash.h"
#include "base/table.h"
#include "cli/human_classifier.h"
#include "trace/export.h"
#include "trace/show.h"
#include "trace/trace_index.h"
#include "trace/trace_stats.h"

namespace ks::cli {
namespace {

namespace fs = base::fs;

struct TraceOptions {
  std::vector<std::string> paths;
  std::string format, out, html, sql, index, to = "atif";
  bool json = false, csv = false, full = false;
  trace::ShowOptions show;
};

/// The transcripts that the arguments name; files of folders that are none are said on standard error.
std::vector<trace::TraceFiles> transcripts(const TraceOptions& options) {
  std::vector<fs::path> others;
  auto traces = trace::find_transcripts(options.paths, &others);
  if (!others.empty())
    fmt::print(stderr, "{} files are no transcripts and were passed over, {} first\n", others.size(),
               others[0].string());
  if (traces.empty())
    throw Error("{}: there is no transcript here; known formats: {}", options.paths.at(0),
                fmt::join(trace::format_names(), ", "));
  return traces;
}

trace::TraceFiles single_transcript(const TraceOptions& options) {
  auto traces = transcripts(options);
  if (traces.size() != 1)
    throw Error("{}: {} transcripts are here; name one of them, {} for example", options.paths.at(0), traces.size(),
                traces[0].main.string());
  return std::move(traces[0]);
}

/// Where output goes: a file that appears whole when finish() is called, or standard output.
class Output {
 public:
  explicit Output(const std::string& path) : path_(path), file_(stdout) {
    if (path.empty()) return;
    temporary_ = path + ".tmp";
    file_ = std::fopen(temporary_.c_str(), "wb");
    if (!file_) throw Error("{}: cannot be written: {}", path, std::strerror(errno));
  }
  ~Output() {
    if (path_.empty() || !file_) return;
    std::fclose(file_);
    std::remove(temporary_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size())
      throw Error("{}: cannot be written: {}", path_.empty() ? "standard output" : path_, std::strerror(errno));
  }
  void finish() {
    if (std::fflush(file_) != 0)
      throw Error("{}: cannot be written: {}", path_.empty() ? "standard output" : path_, std::strerror(errno));
    if (path_.empty()) return;
    std::fclose(std::exchange(file_, nullptr));
    fs::rename(temporary_, path_);
    fmt::print(stderr, "{}\n", path_);
  }

 private:
  std::string path_, temporary_;
  std::FILE* file_;
};

void stats_command(const TraceOptions& options) {
  trace::SeenRecords seen;
  trace::ReadOptions read{options.format, &seen, true};
  std::vector<trace::TraceStats> traces;
  trace::TraceStats total;
  total.name = "all";
  const auto files = transcripts(options);
  for (size_t i = 0; i < files.size(); ++i) {
    if (base::is_interactive() && files.size() > 1) fmt::print(stderr, "\r{} of {} ", i + 1, files.size());
    traces.push_back(trace::stats_of(files[i], human_classifier(), read));
    total.add(traces.back());
  }
  if (base::is_interactive() && files.size() > 1) fmt::print(stderr, "\r                \r");
  if (!options.html.empty()) {
    Output page(options.html);
    page.write(trace::stats_html(traces, total));
    page.finish();
  }
  if (options.json)
    fmt::print("{}\n", trace::stats_json(traces, total).dump(1, ' ', false, Json::error_handler_t::replace));
  else if (options.html.empty())
    fmt::print("{}", trace::stats_table(traces, total));
}

void show_command(const TraceOptions& options) {
  const auto files = single_transcript(options);
  trace::ShowOptions show = options.show;
  if (options.full) show.max_lines = 0;
  show.with_colour = options.html.empty() && ::isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  show.width = base::terminal_width();
  Output output(options.html);
  const auto write = [&](std::string_view text) { output.write(text); };
  const trace::ReadOptions read{.format = options.format};
  if (options.html.empty())
    trace::show_text(files, show, write, read);
  else
    trace::show_html(files, show, write, read);
  output.finish();
}

/// The given index, or one in the cache that belongs to these files.
fs::path index_for(const TraceOptions& options, const std::vector<trace::TraceFiles>& files) {
  fs::path path = options.index;
  if (path.empty()) {
    std::string names;
    for (const auto& trace : files) {
      names += fs::absolute(trace.main).string() + "\n";
      for (const auto& helper : trace.helpers) names += fs::absolute(helper).string() + "\n";
    }
    path = base::cache_folder() / "traces" / (base::sha256_hex(names).substr(0, 16) + ".sqlite");
  }
  if (!trace::index_is_current(path, files)) trace::build_index(path, files);
  return path;
}

void query_command(const TraceOptions& options) {
  fs::path index = options.index;
  if (!options.paths.empty()) index = index_for(options, transcripts(options));
  if (index.empty()) throw Error("name the transcripts to query, or an index of them with --index");
  const auto result = trace::query_index(index, options.sql);
  if (options.csv) {
    fmt::print("{}", trace::csv_of(result));
  } else if (options.json) {
    Json rows = Json::array();
    for (size_t r = 0; r < result.rows.size(); ++r) {
      Json row = Json::object();
      for (size_t c = 0; c < result.columns.size(); ++c)
        row[result.columns[c]] =
            result.is_number[r][c] ? Json::parse(result.rows[r][c], nullptr, false) : Json(result.rows[r][c]);
      rows.push_back(std::move(row));
    }
    fmt::print("{}\n", rows.dump(1, ' ', false, Json::error_handler_t::replace));
  } else {
    base::TextTable table(result.columns);
    for (auto row : result.rows) {
      for (auto& cell : row) std::replace(cell.begin(), cell.end(), '\n', ' ');
      table.add(std::move(row));
    }
    fmt::print("{}", table.text(base::terminal_width()));
  }
}

void export_command(const TraceOptions& options) {
  const auto files = single_transcript(options);
  Output output(options.out);
  const trace::ReadOptions read{.format = options.format};
  if (options.to == "csv")
    trace::write_csv(
        files, [&](std::string_view text) { output.write(text); }, read);
  else
    output.write(trace::atif_of(files, read).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  output.finish();
}

void import_command(const TraceOptions& options) {
  fs::path written;
  const auto report = trace::import_into(single_transcript(options), options.out, written, {.format = options.format});
  fmt::print("{}: {} of {} records of {} lines became events ({})\n", written.string(), report.used, report.records,
             report.lines, report.format);
  for (const auto& [name, count] : report.skipped) fmt::print("  passed over: {} {}\n", count, name);
  for (const auto& [name, count] : report.problems) fmt::print("  problem: {} {}\n", count, name);
}

CLI::App* add(CLI::App* trace, const std::shared_ptr<TraceOptions>& options, const char* name, const char* help,
              const char* example, void (*run)(const TraceOptions&)) {
  auto* command = trace->add_subcommand(name, help);
  command->footer(example);
  command->callback([options, run] { run(*options); });
  return command;
}

std::pair<CLI::App*, CLI::App*> add_copying_commands(CLI::App* trace, const std::shared_ptr<TraceOptions>& options) {
  auto* exporter = add(trace, options, "export", "Write a trace in another format",
                       "Example: kernelseek trace export runs/attention --to atif --out run.json", export_command);
  exporter->add_option("path", options->paths, "A transcript or a run")->required()->expected(1);
  exporter->add_option("--to", options->to, "atif or csv")
      ->check(CLI::IsMember({"atif", "csv"}))
      ->capture_default_str();
  exporter->add_option("--out", options->out, "File (default: standard output)");

  auto* importer = add(trace, options, "import", "Copy a transcript into a run of ours",
                       "Example: kernelseek trace import session.jsonl --out runs/theirs", import_command);
  importer->add_option("path", options->paths, "A transcript")->required()->expected(1);
  importer->add_option("--out", options->out, "Folder of the run")->required();
  return {exporter, importer};
}

}  // namespace

void add_trace_command(CLI::App& app) {
  auto* trace = app.add_subcommand(
      "trace",
      "Read transcripts of Claude Code, Codex, Cursor, Gemini CLI, OpenHands, SWE-agent, aider, ATIF and our own");
  trace->require_subcommand(1);
  trace->footer("Example: kernelseek trace stats ~/.claude/projects --json");
  auto options = std::make_shared<TraceOptions>();
  const std::string format_help =
      fmt::format("Format, where it is not found by content: {}", fmt::join(trace::format_names(), ", "));

  auto* stats =
      add(trace, options, "stats",
          "Print the figures of traces: messages, tools by kind, own source read again, tokens, cost, plateau",
          "Example: kernelseek trace stats runs/attention --html figures.html", stats_command);
  stats->add_option("paths", options->paths, "Transcripts, runs and folders of them")->required();
  stats->add_flag("--json", options->json, "For programs");
  stats->add_option("--html", options->html, "Write the figures as a page");

  auto* show = add(trace, options, "show", "Print a readable transcript",
                   "Example: kernelseek trace show runs/attention --kind evaluation", show_command);
  show->add_option("path", options->paths, "A transcript or a run")->required()->expected(1);
  show->add_option("--html", options->html, "Write it as a page");
  show->add_option("--session", options->show.session, "Only this session (\"main\", or a helper's name)");
  show->add_option("--kind", options->show.kind, "Only events of this kind");
  show->add_flag("--full", options->full, "Do not shorten texts");
  show->add_flag("--notes", options->show.with_notes, "Heartbeats and usage too");

  auto* query =
      add(trace, options, "query", "Ask an SQL question of traces; the index that answers is made when needed",
          "Example: kernelseek trace query 'SELECT kind, count(*) FROM tool_calls GROUP BY kind' runs/attention",
          query_command);
  query->add_option("sql", options->sql, "One SELECT; a wrong one is answered with the list of tables")->required();
  query->add_option("paths", options->paths, "Transcripts, runs and folders of them");
  query->add_option("--index", options->index, "Keep the index in this file (default: in the cache)");
  query->add_flag("--csv", options->csv, "As CSV");
  query->add_flag("--json", options->json, "For programs");

  auto [exporter, importer] = add_copying_commands(trace, options);
  for (CLI::App* command : {stats, show, exporter, importer})
    command->add_option("--format", options->format, format_help);
}

}  // namespace ks::cli
