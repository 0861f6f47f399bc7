#include "run/person.h"

#include <algorithm>
#include <thread>

#include "classify/classify.h"
#include "run/asker.h"
#include "run/steps.h"
#include "steering/lint.h"
#include "trace/trace_reader.h"

namespace ks::run {
namespace {

constexpr size_t kSuggestions = 3;
constexpr int kEvaluationsBetween = 2;
constexpr double kTurnS = 0.05;

/// A person's side of a run.
class PersonAsks {
 public:
  PersonAsks(Session& session, const Person& person)
      : session_(session),
        person_(person),
        bank_(steering::load_bank(steering::bank_folder())),
        feed_(session.paths.root, session.task.seed) {
    // A run that is gone on with goes on counting.
    for (const auto& event : trace::read_trace(session.paths.trace())) {
      if (event.kind != "question") continue;
      last_asked_ = base::value_or(event.body, "evaluation", last_asked_);
      own_count_ += base::value_or<std::string>(event.body, "id", "").starts_with("human-");
    }
  }

  std::optional<Asked> next(const Moment& moment) {
    take_pages_words();
    // A question after the last evaluation would reach nobody.
    if (!moment.stop_requested && !budget_spent(session_).empty()) return std::nullopt;
    if (waiting_words_.empty() && !is_due(moment)) return std::nullopt;
    suggestions_ = steering::best_messages(bank_, feed_.state(moment.stop_requested), kSuggestions);
    if (waiting_words_.empty() && !wait(moment)) return std::nullopt;
    last_asked_ = moment.evaluations;
    if (waiting_words_.empty()) return std::nullopt;
    const std::string words = waiting_words_.front();
    waiting_words_.erase(waiting_words_.begin());
    return asked(words, moment);
  }

 private:
  bool is_due(const Moment& moment) const {
    return moment.stop_requested || last_asked_ < 0 || moment.evaluations - last_asked_ >= kEvaluationsBetween;
  }

  void take_pages_words() {
    for (auto& words : session_.control->take_messages()) waiting_words_.push_back(std::move(words));
  }

  /// Until something was typed or the person goes on; false where the run cannot wait any longer.
  bool wait(const Moment& moment) {
    show(moment);
    session_.control->set_waiting(true);
    const bool answered = wait_for_words();
    session_.control->set_waiting(false);
    return answered;
  }

  bool wait_for_words() {
    const int64_t began = base::monotonic_ns();
    const double limit_s = session_.task.question_seconds;
    while (!session_.is_cancelled() && !session_.control->is_stopped() && budget_spent(session_).empty()) {
      take_pages_words();
      if (!waiting_words_.empty() || session_.control->take_continue()) return true;
      if (limit_s > 0 && static_cast<double>(base::monotonic_ns() - began) * 1e-9 > limit_s) return true;
      if (!person_.read_line) {
        if (!person_.has_page) return true;  // the terminal was closed
        std::this_thread::sleep_for(std::chrono::duration<double>(kTurnS));
        continue;
      }
      const auto line = person_.read_line(kTurnS);
      if (!line) continue;
      if (line->is_end) {
        person_.read_line = {};
        continue;
      }
      if (take_line(line->text)) return true;
    }
    return false;
  }

  /// A line of the terminal; false where it cannot be sent.
  bool take_line(const std::string& line) {
    if (line.find_first_not_of(" \t\r\n") == std::string::npos) return true;
    try {
      waiting_words_.push_back(clean_words(line));
      return true;
    } catch (const Error& e) {
      session_.progress->say(fmt::format("      not sent: {}", e.what()));
      return false;
    }
  }

  void show(const Moment& moment) {
    for (size_t i = 0; i < suggestions_.size(); ++i) {
      session_.progress->say(fmt::format("      {} [{}] {}", i + 1, suggestions_[i].id, suggestions_[i].question));
      for (const auto& fact : suggestions_[i].facts) session_.progress->say("          " + fact);
    }
    session_.progress->say(fmt::format("      {}Your question{}{}, or an empty line to go on:",
                                       moment.stop_requested ? "It says that it is done. " : "",
                                       suggestions_.empty() ? "" : ", the number of one of these",
                                       person_.has_page ? " (here or on the page)" : ""));
  }

  /// A suggestion by its number or its own words, else the person's words.
  Asked asked(const std::string& words, const Moment& moment) {
    const auto first = words.find_first_not_of(" \t\n"), last = words.find_last_not_of(" \t\n");
    const std::string trimmed = words.substr(first, last - first + 1);
    for (size_t i = 0; i < suggestions_.size(); ++i)
      if (trimmed == std::to_string(i + 1) || trimmed == suggestions_[i].question) {
        Asked asked = asked_from(suggestions_[i], moment.evaluations);
        asked.more = {{"chosen_from", "bank"}};
        return asked;
      }
    return own_words(session_.redactor.redact(trimmed));
  }

  Asked own_words(const std::string& words) {
    Asked asked;
    asked.id = fmt::format("human-{}", ++own_count_);
    asked.question = asked.text = words;
    const auto& history = session_.context.history;
    if (!history.empty()) asked.focus = scenario_named(words, history.back().scenarios);
    const auto labels = classify::classify_message(words);
    Json acts = Json::array(), categories = Json::array(), leaks = Json::array();
    for (const auto act : labels.acts) acts.push_back(classify::act_name(act));
    if (labels.acts.contains(classify::Act::kQuestion))
      for (const auto& score : classify::classify_question(words)) categories.push_back(score.category);
    for (const auto& finding : steering::lint_leaks(words)) leaks.push_back(finding.text());
    asked.category = categories.empty() ? "human" : categories.front().get<std::string>();
    asked.more = {{"acts", acts}, {"categories", categories}, {"leaks", leaks}};
    return asked;
  }

  Session& session_;
  Person person_;
  steering::Bank bank_;
  SteeringFeed feed_;
  std::vector<steering::Message> suggestions_;
  std::vector<std::string> waiting_words_;
  int last_asked_ = -1, own_count_ = 0;
};

}  // namespace

void check_person(const Person& person) {
  if (person.read_line || person.has_page) return;
  throw Error(
      "questioner \"human\" needs a person: run it at a terminal, or with --serve, which prints the address of a page "
      "with a box to ask in");
}

Questioner make_person(Session& session, const Person& person) {
  auto asks = std::make_shared<PersonAsks>(session, person);
  return [asks](const Moment& moment) { return asks->next(moment); };
}

std::string scenario_named(const std::string& text, const std::vector<agents::ScenarioFigures>& scenarios) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  const auto holds = [&](const std::string& name) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const size_t end = at + name.size();
      if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
    }
    return false;
  };
  std::string best;
  for (const auto& scenario : scenarios) {
    const std::string name = scenario.name.substr(scenario.name.find('/') + 1);
    if (name.size() > best.size() && holds(name)) best = name;
  }
  return best;
}

}  // namespace ks::run
