// The question bank: data/questions/*.toml, a file per category, read, checked and rendered.
//
// A question has a trigger (when it is called for), a text with slots, the signals whose facts are shown above it, and
// what a good answer contains. Slots are filled from evidence alone: with a signal's value, or with a name that the
// facts carry. docs/formats/bank.md documents every key and slot.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "signals/evidence.h"
#include "signals/signal_set.h"
#include "steering/trigger.h"

namespace ks::steering {

/// The eight kinds of questions; each has a file of its name.
inline constexpr std::array<std::string_view, 8> kCategories = {
    "measurement_check", "benchmark_validity", "agent_process",     "bound_differencing",
    "gap_triage",        "hypothesis_check",   "challenge_a_limit", "strategy_options"};

/// A slot that facts fill. Beside these, every signal is a slot of its own name, filled with its value.
struct SlotInfo {
  std::string_view name;
  std::string_view sources;  ///< the signals whose evidence fills it; "claims_*" stands for all that begin so
  std::string_view meaning;
  bool is_name = false;  ///< a name of a row or axis: the lint does not judge it
};

inline constexpr std::array<SlotInfo, 8> kSlots = {{
    {"config",
     "ratio_min n_configs_regressed best_per_config_gap any_above_bound frac_of_bound outside_share n_correct_frac",
     "the row that the facts are about", true},
    {"config_a", "ratio_spread ratio_max", "the row with the lowest ratio", true},
    {"config_b", "ratio_spread ratio_max", "the row with the highest ratio", true},
    {"axis", "axes_unswept size_exponent_error", "the first column of the grid that was never varied alone", true},
    {"feature", "feature_gap_rel", "the switch with the largest difference", true},
    {"command", "same_command_fail", "the command that fails alike", false},
    {"claim", "claims_* claim_has_number", "the agent's own sentence", false},
    {"step", "strategy_repeat", "where the idea was dropped", false},
}};

/// The row of a slot that facts fill, or nullptr.
const SlotInfo* find_slot(std::string_view name);
/// The evidence of `signal` can fill the slot.
bool fills(std::string_view signal, const SlotInfo& slot);

struct Question {
  std::string id, category, text, expects, leak_risk, source, needs;
  std::vector<std::string> evidence;  ///< signals whose facts are shown, in order
  std::vector<std::string> slots;     ///< in the order of the text
  bool is_invalidity = false;         ///< asks whether the result is valid at all: goes before the others
  Trigger trigger;
  std::string where;  ///< "file:line"
};

struct Bank {
  std::vector<Question> questions;
  std::string hash;  ///< of all files, for records
  const Question* find(std::string_view id) const;
};

/// What `bank check` says.
struct BankReport {
  int files = 0, questions = 0;
  std::vector<std::string> problems;  ///< "file:line: what, and the mend"
  std::array<int, kCategories.size()> by_category{};
  std::array<int, kCategories.size()> reachable{};  ///< with the signals that are computed
};

/// `data/questions` of this project.
base::fs::path bank_folder();

/// Reads the files and puts every problem into `report`; the bank holds the questions without one.
Bank check_bank(const base::fs::path& folder, BankReport& report);

/// Reads a bank that has to be right; throws ks::Error with the first problem.
Bank load_bank(const base::fs::path& folder);

/// A question as it is sent: facts, then the question, then nothing.
struct Message {
  std::string id, category;
  std::string question;              ///< the question alone
  std::vector<std::string> facts;    ///< each with its origin
  std::string focus;                 ///< the row that the facts are about; "" none
  std::string log_id, log_category;  ///< what the log of asked questions gets: the entry whose turn it was
  std::vector<std::string> names;    ///< names of rows and axes that filled slots: no leak
  std::string evidence_hash;         ///< of the facts that this entry showed
  std::string text() const;
};

inline constexpr size_t kMostFacts = 3;

/// A value as a slot shows it: "41 %", "7", "0.48".
std::string slot_text(const signals::Signal& signal, std::string_view name);

/// Gives what can be shown for signals.
using EvidenceSource = std::function<signals::Evidence(const std::vector<std::string>&)>;

/// The evidence of a question: a fact of each of its signals in turn, so that none crowds out the others.
signals::Evidence gather(const Question& question, const EvidenceSource& source);

/// Fills the slots and takes the facts. Nothing where a slot has no evidence or nothing can be shown; `why` says so.
std::optional<Message> fill(const Question& question, const signals::SignalSet& signals,
                            const signals::Evidence& evidence, std::string& why);

/// What the lint finds in a filled message; empty where it may be sent. `names` are names of rows, axes and files.
std::string lint_message(const Message& message, const std::vector<std::string>& names);

}  // namespace ks::steering
