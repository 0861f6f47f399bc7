#include "steering/questioner.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "steering/lint.h"

namespace ks::steering {
namespace {

class NoQuestioner : public Questioner {
 public:
  std::string name() const override { return "none"; }
  std::optional<Message> next(const SteeringState&) const override { return std::nullopt; }
};

class BankQuestioner : public Questioner {
 public:
  BankQuestioner(const Bank& bank, const SelectionPolicy& policy) : bank_(bank), policy_(policy) {}
  std::string name() const override { return "bank"; }
  std::optional<Message> next(const SteeringState& state) const override {
    return select_question(bank_, state, policy_).message;
  }

 private:
  const Bank& bank_;
  SelectionPolicy policy_;
};

/// The bank's moments; what is said then is up to the classes below.
class AtBanksMoments : public Questioner {
 public:
  AtBanksMoments(const Bank& bank, const SelectionPolicy& policy) : bank_(bank), policy_(policy) {}
  std::optional<Message> next(const SteeringState& state) const override {
    const auto chosen = select_question(bank_, state, policy_).message;
    return chosen ? instead_of(*chosen, state) : std::nullopt;
  }

 protected:
  virtual std::optional<Message> instead_of(const Message& chosen, const SteeringState& state) const = 0;
  const Bank& bank_;
  SelectionPolicy policy_;
};

class NeutralQuestioner : public AtBanksMoments {
 public:
  using AtBanksMoments::AtBanksMoments;
  std::string name() const override { return "neutral"; }

 protected:
  std::optional<Message> instead_of(const Message& chosen, const SteeringState&) const override {
    Message message = chosen;
    message.id = message.category = "neutral";
    message.question = std::string(kNeutralTexts[0]);
    message.focus.clear();
    return message;
  }
};

class ShuffledQuestioner : public AtBanksMoments {
 public:
  using AtBanksMoments::AtBanksMoments;
  std::string name() const override { return "shuffled"; }

 protected:
  /// The first question of the seeded order, from where the run has come to, that can be filled now.
  std::optional<Message> instead_of(const Message& chosen, const SteeringState& state) const override {
    std::vector<std::pair<std::string, const Question*>> order;
    for (const Question& question : bank_.questions)
      order.emplace_back(base::sha256_hex(fmt::format("{} {}", state.seed, question.id)), &question);
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) {
      const Question& question = *order[(state.asked.size() + i) % order.size()].second;
      std::string why;
      const auto evidence = gather(question, state.evidence);
      auto message = fill(question, state.signals, evidence, why);
      if (!message || !lint_message(*message, state.names).empty()) continue;
      message->log_id = chosen.log_id;
      message->log_category = chosen.log_category;
      message->evidence_hash = chosen.evidence_hash;
      return message;
    }
    return std::nullopt;
  }
};

class HintsQuestioner : public AtBanksMoments {
 public:
  HintsQuestioner(const Bank& bank, const QuestionerOptions& options) : AtBanksMoments(bank, options.policy) {
    if (options.hints_path.empty()) throw Error("questioner \"hints\" needs a file of directives, one a line");
    for (const auto& line : base::read_lines(options.hints_path))
      if (!line.empty() && line[0] != '#') hints_.push_back(line);
    if (hints_.empty()) throw Error("{}: there is no directive in it; write one a line", options.hints_path);
  }
  std::string name() const override { return "hints"; }

 protected:
  std::optional<Message> instead_of(const Message& chosen, const SteeringState& state) const override {
    if (state.asked.size() >= hints_.size()) return std::nullopt;
    Message message = chosen;
    message.id = fmt::format("hint-{}", state.asked.size() + 1);
    message.category = "hint";
    message.question = hints_[state.asked.size()];
    return message;
  }

 private:
  std::vector<std::string> hints_;
};

/// The bank's moments and its best entries; a model picks one by its id.
class ByModel : public Questioner {
 public:
  ByModel(const Bank& bank, const QuestionerOptions& options) : bank_(bank), options_(options) {
    check_model(options_.model);
    if (!options_.post) options_.post = post_json;
  }
  std::string name() const override { return "model"; }
  std::optional<Message> next(const SteeringState& state) const override {
    if (!select_question(bank_, state, options_.policy).message) return std::nullopt;
    const auto offered = best_messages(bank_, state, kOffered, options_.policy);
    const ModelChoice choice = choose_by_model(options_.model, offered, options_.post);
    if (options_.note) options_.note(note_of(choice, offered));
    if (choice.index < 0) return std::nullopt;
    return offered[static_cast<size_t>(choice.index)];
  }

 private:
  const Bank& bank_;
  QuestionerOptions options_;
};

}  // namespace

std::vector<std::string> questioner_names() {
  return {"none", "bank", "neutral", "shuffled", "hints", "model", "human"};
}

std::unique_ptr<Questioner> make_questioner(const std::string& name, const Bank& bank,
                                            const QuestionerOptions& options) {
  if (name == "none") return std::make_unique<NoQuestioner>();
  if (name == "bank") return std::make_unique<BankQuestioner>(bank, options.policy);
  if (name == "neutral") return std::make_unique<NeutralQuestioner>(bank, options.policy);
  if (name == "shuffled") return std::make_unique<ShuffledQuestioner>(bank, options.policy);
  if (name == "hints") return std::make_unique<HintsQuestioner>(bank, options);
  if (name == "model") return std::make_unique<ByModel>(bank, options);
  if (name == "human") throw Error("questioner \"human\" is a person: a run asks it, not the bank");
  const std::string near = base::nearest_word(name, questioner_names());
  throw Error("unknown questioner \"{}\"{}; known: {}", name,
              near.empty() ? "" : fmt::format(" (did you mean {}?)", near), fmt::join(questioner_names(), ", "));
}

Asked log_entry(const Message& message, const SteeringState& state) {
  return {message.log_id, message.log_category, state.n_evaluations, message.evidence_hash, std::nullopt};
}

}  // namespace ks::steering
