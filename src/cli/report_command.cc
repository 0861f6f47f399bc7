// kernelseek report RUN|RECORD|TRANSCRIPT [--out FILE]
#include "cli/report_command.h"

#include <memory>

#include "base/file.h"
#include "report/write_report.h"

namespace ks::cli {
namespace {

struct ReportOptions {
  std::string path, out;
};

/// Beside what it is about: in the run's folder, next to the record or transcript; in the working folder where that
/// cannot be written.
base::fs::path default_output(const base::fs::path& path) {
  if (base::fs::is_directory(path)) return path / "report.html";
  base::fs::path out = path;
  return out.replace_extension(".html");
}

void report_command(const ReportOptions& options) {
  const base::fs::path path = options.path;
  const auto page = report::read_page_data(path);
  if (page.empty())
    throw Error("{}: holds nothing to report on; give a run's folder, an evaluation record or a transcript",
                options.path);
  const base::fs::path out = options.out.empty() ? default_output(path) : base::fs::path(options.out);
  base::write_file_atomically(out, report::page_html(page));
  fmt::print("{}\n", base::fs::absolute(out).lexically_normal().string());
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  auto* command =
      app.add_subcommand("report", "Write one self-contained HTML page about a run, a record or a transcript");
  command->footer("Example: kernelseek report runs/demo-1 --out report.html");
  command
      ->add_option("run", options->path,
                   "A run's folder, an evaluation record, a folder of records, or a transcript of any known format")
      ->required();
  command->add_option("--out", options->out, "The page (default: report.html in the run's folder, or beside the file)");
  command->callback([options] { report_command(*options); });
}

}  // namespace ks::cli
