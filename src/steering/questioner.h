// Questioners: who chooses what an agent is told, and when. All but `none` speak at the moments at which the bank
// would, and show facts in the same form, so that arms of an experiment differ in one thing alone.
//
//   none      says nothing
//   bank      the question that the evidence calls for
//   neutral   the bank's moments and facts, and "Continue towards the goal."
//   shuffled  the bank's moments, questions of the bank in a seeded order, with their own facts
//   model     a language model picks an entry out of the bank's best by its id; nothing else of its answer is used
//   hints     the bank's moments, and the lines of a file in order: directives, not linted, each said once
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "steering/model_questioner.h"
#include "steering/select.h"

namespace ks::steering {

/// Chooses a message for a state, or none. Deterministic for a state; keeps nothing but what it was made of.
class Questioner {
 public:
  virtual ~Questioner() = default;
  virtual std::string name() const = 0;
  virtual std::optional<Message> next(const SteeringState& state) const = 0;
};

/// What a questioner may need.
struct QuestionerOptions {
  std::string hints_path;                 ///< of `hints`
  ModelQuestioner model;                  ///< of `model`
  Post post;                              ///< how `model` reaches its server; empty: HTTP
  std::function<void(const Json&)> note;  ///< what is recorded of a choice beside it
  SelectionPolicy policy;
};

/// The names that make_questioner knows.
std::vector<std::string> questioner_names();

/// Throws ks::Error for an unknown name (with the nearest known one) or a hints file that is missing or empty. The bank
/// must outlive the questioner.
std::unique_ptr<Questioner> make_questioner(const std::string& name, const Bank& bank,
                                            const QuestionerOptions& options = {});

/// What the log gets for a message sent in this state.
Asked log_entry(const Message& message, const SteeringState& state);

}  // namespace ks::steering
