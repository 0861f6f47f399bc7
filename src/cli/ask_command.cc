#include "cli/ask_command.h"

#include "cli/commands.h"
#include "run/asker.h"
#include "steering/questioner.h"

namespace ks::cli {
namespace {

struct AskOptions {
  std::string run;
  bool why = false, json = false;
  size_t count = 1;
};

Json json_of(const steering::Message& message) {
  return {{"id", message.id},
          {"category", message.category},
          {"facts", message.facts},
          {"question", message.question},
          {"focus", message.focus}};
}

void ask_command(const AskOptions& options) {
  run::ensure_trace(options.run);
  const steering::Bank bank = steering::load_bank(steering::bank_folder());
  run::SteeringFeed feed(options.run, 1);
  const auto state = feed.state(false);
  // A person asks now: the gates on the moment (too soon after the last question) are for agents.
  const auto selection = steering::select_question(bank, state, {}, true);
  const auto best = steering::best_messages(bank, state, options.count);
  if (options.json) {
    Json result = Json::object();
    result["questions"] = Json::array();
    for (const auto& message : best) result["questions"].push_back(json_of(message));
    if (options.why) result["why"] = selection.explain();
    fmt::print("{}\n", result.dump(1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  if (best.empty()) fmt::print("Nothing that is known calls for a question.\n");
  for (size_t i = 0; i < best.size(); ++i)
    fmt::print("{}[{}] {}\n{}\n", i == 0 ? "" : "\n", best[i].category, best[i].id, best[i].text());
  if (options.why) fmt::print("\n{}", selection.explain());
}

}  // namespace

void add_ask_command(CLI::App& app) {
  auto options = std::make_shared<AskOptions>();
  auto* command = app.add_subcommand("ask", "The question that a run's evidence calls for now");
  command->footer(
      "Example: kernelseek ask runs/attention_demo-1 --why\n"
      "RUN may also be a folder of evaluation records; it then gets a trace of its own, trace.jsonl.");
  command->add_option("run", options->run, "Run folder, or a folder of evaluation records")->required();
  command->add_flag("--why", options->why, "Every entry that fires, its rank, and the gate that held others back");
  command->add_option("--count", options->count, "How many questions")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { ask_command(*options); });
}

}  // namespace ks::cli
