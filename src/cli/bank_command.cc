// kernelseek bank list | show | check | coverage: the questions, and what runs made of them.
#include "base/table.h"
#include "cli/commands.h"
#include "cli/data_checks.h"
#include "run/coverage.h"
#include "steering/bank.h"

namespace ks::cli {
namespace {

void list_questions(const std::string& category) {
  const auto bank = steering::load_bank(steering::bank_folder());
  base::TextTable table({"id", "category", "question"});
  for (const auto& question : bank.questions)
    if (category.empty() || question.category == category) table.add({question.id, question.category, question.text});
  fmt::print("{}", table.text(base::terminal_width()));
}

void show_question(const std::string& id) {
  const auto bank = steering::load_bank(steering::bank_folder());
  const auto* question = bank.find(id);
  if (question == nullptr) {
    std::vector<std::string> ids;
    for (const auto& one : bank.questions) ids.push_back(one.id);
    const auto near = base::nearest_word(id, ids);
    throw Error("no question \"{}\"{}", id, near.empty() ? "" : "; did you mean " + near + "?");
  }
  fmt::print("{} ({}, {})\n\n{}\n\nevidence: {}\na good answer contains: {}\nleak risk: {}\nsource: {}\n", question->id,
             question->category, question->where, question->text, fmt::join(question->evidence, ", "),
             question->expects, question->leak_risk, question->source);
}

void check_questions() {
  steering::BankReport report;
  steering::check_bank(steering::bank_folder(), report);
  for (const auto& problem : report.problems) fmt::print("{}\n", problem);
  for (size_t i = 0; i < steering::kCategories.size(); ++i)
    fmt::print("{:<20} {:>3} questions, {:>3} reachable with the signals that are computed\n", steering::kCategories[i],
               report.by_category[i], report.reachable[i]);
  fmt::print("{} files, {} questions, {} problems\n", report.files, report.questions, report.problems.size());
  exit_code() = report.problems.empty() ? kDone : kWrong;
}

struct CoverageOptions {
  std::vector<std::string> runs;
  int within = 3;
  bool all = false, json = false;
};

void print_coverage(const steering::Bank& bank, const run::Coverage& coverage, bool all) {
  base::TextTable table({"id", "category", "fired", "unsayable", "first", "asked", "answered", "improved after"});
  size_t silent = 0;
  for (const auto& question : bank.questions) {
    const auto& entry = coverage.entries.at(question.id);
    silent += entry.fired == 0;
    if (entry.fired == 0 && entry.asked == 0 && !all) continue;
    table.add({question.id, question.category, std::to_string(entry.fired), std::to_string(entry.unsayable),
               std::to_string(entry.first), std::to_string(entry.asked), std::to_string(entry.answered),
               std::to_string(entry.improved)});
  }
  fmt::print("{}{} runs, {} evaluations; {} of {} entries never fired{}\n", table.text(base::terminal_width()),
             coverage.runs, coverage.moments, silent, bank.questions.size(),
             all || silent == 0 ? "" : " (--all lists them)");
}

void cover_questions(const CoverageOptions& options) {
  const auto bank = steering::load_bank(steering::bank_folder());
  const auto coverage = run::coverage_of(bank, {options.runs.begin(), options.runs.end()}, options.within);
  if (options.json)
    fmt::print("{}\n", run::to_json(coverage).dump(1));
  else
    print_coverage(bank, coverage, options.all);
}

}  // namespace

void add_bank_command(CLI::App& app) {
  auto* command = app.add_subcommand("bank", "The questions that steer");
  command->footer("Example: kernelseek bank list --category gap_triage");
  command->require_subcommand(1);
  auto category = std::make_shared<std::string>();
  auto* list = command->add_subcommand("list", "The questions, a line each");
  list->add_option("--category", *category, "Only this category");
  list->callback([category] { list_questions(*category); });
  auto id = std::make_shared<std::string>();
  auto* show = command->add_subcommand("show", "One question with all that belongs to it");
  show->add_option("id", *id, "The question's id")->required();
  show->callback([id] { show_question(*id); });
  auto coverage = std::make_shared<CoverageOptions>();
  auto* cover = command->add_subcommand("coverage", "Which entries fired, were asked, and were followed by a gain");
  cover->footer("Example: kernelseek bank coverage runs --within 3");
  cover->add_option("runs", coverage->runs, "Folders of runs, or folders that hold some")->required();
  cover->add_option("--within", coverage->within, "Evaluations after a question in which the best must rise")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  cover->add_flag("--all", coverage->all, "Also the entries that never fired");
  cover->add_flag("--json", coverage->json, "Print JSON");
  cover->callback([coverage] { cover_questions(*coverage); });
  command->add_subcommand("check", "Validate every entry: schema, triggers, slots, language, leaks")
      ->callback(check_questions);
  more_data_checks().push_back([](DataReport& report) {
    steering::BankReport bank;
    steering::check_bank(steering::bank_folder(), bank);
    report.files += bank.files;
    report.problems.insert(report.problems.end(), bank.problems.begin(), bank.problems.end());
  });
}

}  // namespace ks::cli
