#include "steering/bank.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "base/toml.h"
#include "signals/signal_list.h"
#include "steering/lint.h"

namespace ks::steering {
namespace {

constexpr std::array<std::string_view, 10> kKeys = {"id",        "text",   "trigger", "evidence",   "expects",
                                                    "leak_risk", "source", "needs",   "invalidity", "category"};

std::vector<std::string> slots_of(const std::string& text) {
  std::vector<std::string> slots;
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    const size_t close = text.find('}', open);
    if (close == std::string::npos) throw Error("the slot that begins at \"{}\" is not closed", text.substr(open));
    slots.push_back(text.substr(open + 1, close - open - 1));
  }
  return slots;
}

/// Column of the first character inside the quotes of a line `key = "…"`.
int value_column(const std::vector<std::string>& lines, int line) {
  if (line < 1 || line > static_cast<int>(lines.size())) return 1;
  const size_t quote = lines[line - 1].find('"');
  return quote == std::string::npos ? 1 : static_cast<int>(quote) + 2;
}

/// One entry of a file, while it is read and checked. Every failure is a ks::Error without the place.
class Entry {
 public:
  Entry(const base::TomlFile& file, size_t index, const std::vector<std::string>& lines)
      : file_(file), key_(fmt::format("question[{}]", index)), table_(file.values["question"][index]), lines_(lines) {}

  std::string where(const std::string& key = "") const {
    const std::string path = key.empty() ? key_ : key_ + "." + key;
    return file_.lines.contains(path) ? file_.where(path) : file_.where(key_);
  }

  Question read(const std::string& category) const {
    check_keys();
    const auto line = file_.lines.find(key_ + ".trigger");
    const int trigger_line = line == file_.lines.end() ? 1 : line->second;
    Question question{.trigger =
                          Trigger(text("trigger"), {file_.path, trigger_line, value_column(lines_, trigger_line)})};
    question.id = text("id");
    question.category = category;
    question.text = text("text");
    question.expects = text("expects");
    question.leak_risk = text("leak_risk");
    question.source = text("source");
    question.needs = table_.contains("needs") ? text("needs") : "";
    question.is_invalidity = table_.contains("invalidity") && table_["invalidity"] == true;
    for (const auto& name : list("evidence")) question.evidence.push_back(name);
    question.where = where();
    question.slots = slots_of(question.text);
    return question;
  }

 private:
  void check_keys() const {
    if (!table_.is_object()) throw Error("a question is a table: begin it with [[question]]");
    const std::vector<std::string> known(kKeys.begin(), kKeys.end());
    for (const auto& [key, value] : table_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = base::nearest_word(key, known);
      throw Error("unknown key \"{}\"{}", key, near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
    }
  }
  std::string text(const char* key) const {
    const auto found = table_.find(key);
    if (found == table_.end()) throw Error("the key \"{}\" is missing", key);
    if (!found->is_string() || found->get<std::string>().empty())
      throw Error("\"{}\" must be a text that is not empty", key);
    return found->get<std::string>();
  }
  std::vector<std::string> list(const char* key) const {
    const auto found = table_.find(key);
    const bool is_list = found != table_.end() && found->is_array() && !found->empty() &&
                         std::all_of(found->begin(), found->end(), [](const Json& item) { return item.is_string(); });
    if (!is_list) throw Error("\"{}\" must be a list of signals with at least one of them", key);
    return found->get<std::vector<std::string>>();
  }

  const base::TomlFile& file_;
  std::string key_;
  const Json& table_;
  const std::vector<std::string>& lines_;
};

bool is_computed(std::string_view name) {
  const signals::SignalInfo* info = signals::find_signal(name);
  return info != nullptr && info->computed;
}

/// The problems of one question by itself, without the place.
std::vector<std::string> problems_of(const Question& question) {
  std::vector<std::string> problems;
  const auto add = [&](const std::string& text) {
    problems.push_back(fmt::format("question \"{}\": {}", question.id, text));
  };
  const bool id_is_plain = std::all_of(question.id.begin(), question.id.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
           c == '-';
  });
  if (!id_is_plain) add("an id is made of small letters, digits and hyphens");
  if (question.trigger.never_fires()) add("the trigger contradicts itself and can never be true");
  if (question.trigger.always_fires()) add("the trigger is true whatever the values are");
  for (const auto& name : question.evidence)
    if (signals::find_signal(name) == nullptr) add(fmt::format("the evidence \"{}\" is no known signal", name));
  const auto reads = [&](const std::string& name) {
    const auto& in_trigger = question.trigger.signals();
    return std::find(in_trigger.begin(), in_trigger.end(), name) != in_trigger.end() ||
           std::find(question.evidence.begin(), question.evidence.end(), name) != question.evidence.end();
  };
  for (const auto& name : question.slots) {
    const SlotInfo* slot = find_slot(name);
    if (slot == nullptr && signals::find_signal(name) == nullptr) {
      add(fmt::format("unknown slot {{{}}}; a slot is a signal or one of those in docs/formats/bank.md", name));
    } else if (slot == nullptr ? !reads(name)
                               : std::none_of(question.evidence.begin(), question.evidence.end(),
                                              [&](const auto& signal) { return fills(signal, *slot); })) {
      add(fmt::format("nothing in its evidence fills the slot {{{}}}; add one of: {}", name,
                      slot == nullptr ? std::string_view(name) : slot->sources));
    }
  }
  for (const auto& finding : lint_question(question.text)) add(finding.text());
  if (!question.leak_risk.starts_with("low: ") && !question.leak_risk.starts_with("medium: ") &&
      !question.leak_risk.starts_with("high: "))
    add("leak_risk begins with \"low: \", \"medium: \" or \"high: \"");
  const bool is_reachable = question.trigger.can_fire_with(is_computed);
  if (!is_reachable && question.needs.empty())
    add("no computed signals can make the trigger true; mend it, or name the missing ones in \"needs\"");
  if (is_reachable && std::none_of(question.evidence.begin(), question.evidence.end(), is_computed))
    add("none of its evidence is computed, so nothing could be shown");
  return problems;
}

/// Two questions that say the same, and ids that occur twice.
void check_pairs(const std::vector<Question>& questions, std::vector<std::string>& problems) {
  std::map<std::string, const Question*> seen;
  for (const Question& question : questions) {
    const auto [at, is_new] = seen.emplace(question.id, &question);
    if (!is_new)
      problems.push_back(
          fmt::format("{}: the id \"{}\" is taken by {}", question.where, question.id, at->second->where));
  }
  std::vector<std::set<std::string>> words;
  for (const Question& question : questions) words.push_back(content_words(question.text));
  for (size_t i = 0; i < questions.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      size_t shared = 0;
      for (const auto& word : words[i]) shared += words[j].contains(word) ? 1 : 0;
      const size_t all = words[i].size() + words[j].size() - shared;
      if (all == 0 || static_cast<double>(shared) / static_cast<double>(all) <= kMostOverlap) continue;
      problems.push_back(fmt::format("{}: \"{}\" says much the same as \"{}\" ({} of {} words); merge the two",
                                     questions[i].where, questions[i].id, questions[j].id, shared, all));
    }
}

void check_file(const base::fs::path& path, BankReport& report, std::vector<Question>& questions) {
  const std::string category = path.stem().string();
  ++report.files;
  const auto* known = std::find(kCategories.begin(), kCategories.end(), category);
  if (known == kCategories.end())
    throw Error("{}: a file is named after its category; \"{}\" is none", path.string(), category);
  const base::TomlFile file = base::read_toml_file(path.string());
  const std::vector<std::string> lines = base::read_lines(path);
  if (!file.values.contains("question") || !file.values["question"].is_array())
    throw Error("{}: there is no [[question]]", path.string());
  const size_t index = static_cast<size_t>(known - kCategories.begin());
  for (size_t i = 0; i < file.values["question"].size(); ++i) {
    const Entry entry(file, i, lines);
    ++report.questions;
    try {
      Question question = entry.read(category);
      const auto problems = problems_of(question);
      for (const auto& problem : problems) report.problems.push_back(fmt::format("{}: {}", question.where, problem));
      ++report.by_category[index];
      if (question.trigger.can_fire_with(is_computed)) ++report.reachable[index];
      questions.push_back(std::move(question));
    } catch (const Error& e) {
      const std::string what = e.what();
      report.problems.push_back(what.starts_with(file.path) ? what : fmt::format("{}: {}", entry.where(), what));
    }
  }
}

}  // namespace

const SlotInfo* find_slot(std::string_view name) {
  const auto* found =
      std::find_if(kSlots.begin(), kSlots.end(), [&](const SlotInfo& slot) { return slot.name == name; });
  return found == kSlots.end() ? nullptr : found;
}

bool fills(std::string_view signal, const SlotInfo& slot) {
  std::string_view rest = slot.sources;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    const std::string_view source = rest.substr(0, space);
    if (source.ends_with('*') ? signal.starts_with(source.substr(0, source.size() - 1)) : signal == source) return true;
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
  }
  return false;
}

const Question* Bank::find(std::string_view id) const {
  const auto found =
      std::find_if(questions.begin(), questions.end(), [&](const auto& question) { return question.id == id; });
  return found == questions.end() ? nullptr : &*found;
}

base::fs::path bank_folder() {
  return base::project_root() / "data" / "questions";
}

Bank check_bank(const base::fs::path& folder, BankReport& report) {
  if (!base::fs::is_directory(folder)) throw Error("{}: there is no such folder of questions", folder.string());
  std::vector<base::fs::path> paths;
  for (const auto& item : base::fs::directory_iterator(folder))
    if (item.path().extension() == ".toml") paths.push_back(item.path());
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw Error("{}: there are no *.toml files of questions", folder.string());
  Bank bank;
  std::string all;
  for (const auto& path : paths) {
    try {
      check_file(path, report, bank.questions);
      all += path.filename().string() + "\n" + base::read_file(path);
    } catch (const Error& e) {
      report.problems.emplace_back(e.what());
    }
  }
  check_pairs(bank.questions, report.problems);
  bank.hash = base::sha256_hex(all);
  return bank;
}

Bank load_bank(const base::fs::path& folder) {
  BankReport report;
  Bank bank = check_bank(folder, report);
  if (!report.problems.empty())
    throw Error("{}{}", report.problems.front(),
                report.problems.size() == 1
                    ? ""
                    : fmt::format(" (and {} more; bank check lists them)", report.problems.size() - 1));
  return bank;
}

}  // namespace ks::steering
