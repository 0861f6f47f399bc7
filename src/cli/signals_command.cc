#include "cli/signals_command.h"

#include "base/table.h"
#include "cli/commands.h"
#include "run/asker.h"

namespace ks::cli {
namespace {

struct SignalsOptions {
  std::string run;
  bool json = false;
};

void signals_command(const SignalsOptions& options) {
  const base::fs::path path = options.run;
  if (base::fs::is_directory(path)) run::ensure_trace(path);
  const auto tracker = signals::read_run(path);
  const auto signals = tracker.current();
  if (options.json) {
    fmt::print("{}\n", signals::to_json(signals).dump(1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  base::TextTable table({"signal", "value", "unit", "from"});
  for (const auto& [name, signal] : signals)
    table.add({name, signals::value_text(signal.value), signal.unit, signal.origin});
  fmt::print("{}{} signals are known; the others are unknown, which is not zero.\n", table.text(base::terminal_width()),
             signals.size());
}

}  // namespace

void add_signals_command(CLI::App& app) {
  auto options = std::make_shared<SignalsOptions>();
  auto* command = app.add_subcommand("signals", "The values that questions are chosen by, with where they come from");
  command->footer("Example: kernelseek signals runs/attention_demo-1");
  command->add_option("run", options->run, "Run folder, folder of evaluation records, or a transcript")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { signals_command(*options); });
}

}  // namespace ks::cli
