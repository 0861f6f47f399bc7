// kernelseek bank list | show | check: the questions.
#include "base/table.h"
#include "cli/commands.h"
#include "cli/data_checks.h"
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
