// kernelseek baseline list | install | pack | unpack: the implementations compared with.
#include "base/table.h"
#include "cli/commands.h"
#include "evaluator/baseline_store.h"

namespace ks::cli {
namespace {

void list_baselines(bool json) {
  Json rows = Json::array();
  base::TextTable table({"name", "device", "installed", "operators", "what", "from"});
  for (const auto& baseline : evaluator::known_baselines("")) {
    const auto missing = evaluator::missing_parts(baseline);
    rows.push_back({{"name", baseline.name},
                    {"device", baseline.device},
                    {"installed", missing.empty()},
                    {"missing", missing},
                    {"operators", baseline.operators},
                    {"summary", baseline.summary},
                    {"from", baseline.from}});
    table.add({baseline.name, baseline.device, missing.empty() ? "yes" : "no",
               fmt::format("{}", fmt::join(baseline.operators, ", ")), baseline.summary, baseline.from});
  }
  if (json)
    fmt::print("{}\n", rows.dump(1));
  else
    fmt::print("{}install one with: kernelseek baseline install NAME\n", table.text(base::terminal_width()));
}

void unpack(const std::string& archive) {
  const auto names = evaluator::unpack_baselines(archive);
  fmt::print("unpacked: {}\n", fmt::join(names, ", "));
  for (const auto& name : names)
    if (const auto missing = evaluator::missing_parts(evaluator::find_baseline(name, "")); !missing.empty())
      fmt::print("{} cannot run yet: {}\n", name, missing);
}

}  // namespace

void add_baseline_command(CLI::App& app) {
  auto* command = app.add_subcommand("baseline", "The implementations that candidates are compared with");
  command->footer("Example: kernelseek baseline install onednn");
  command->require_subcommand(1);
  auto json = std::make_shared<bool>(false);
  auto* list = command->add_subcommand("list", "What there is, and what is installed");
  list->add_flag("--json", *json, "For programs");
  list->callback([json] { list_baselines(*json); });
  auto name = std::make_shared<std::string>(), python = std::make_shared<std::string>();
  auto* install = command->add_subcommand("install", "Get a baseline's packages into the project's own environment");
  install->add_option("name", *name, "Baseline")->required();
  install->add_option("--python", *python, "Version of the interpreter that will load it, to pack for another machine");
  install->callback([name, python] {
    evaluator::install_baseline(evaluator::find_baseline(*name, ""), *python);
    fmt::print("baseline {} is installed\n", *name);
  });
  auto names = std::make_shared<std::vector<std::string>>();
  auto archive = std::make_shared<std::string>();
  auto* pack =
      command->add_subcommand("pack", "One small archive of what baselines load, for a machine without network");
  pack->footer("Example: kernelseek baseline pack fa3 cudnn flashmla --out rivals.tar.xz");
  pack->add_option("names", *names, "Baselines")->required();
  pack->add_option("--out", *archive, "File to write")->required();
  pack->callback([names, archive] {
    const uint64_t bytes = evaluator::pack_baselines(*names, *archive);
    fmt::print("{}: {:.1f} MiB\n", *archive, static_cast<double>(bytes) / (1 << 20));
  });
  auto* unpack_command = command->add_subcommand("unpack", "Put the baselines of such an archive in place, checked");
  unpack_command->add_option("file", *archive, "Archive")->required();
  unpack_command->callback([archive] { unpack(*archive); });
}

}  // namespace ks::cli
