#include "signals/trace_signals.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "signals/claim_text.h"
#include "trace/importer.h"

namespace ks::signals {
namespace {

constexpr size_t kPastEdits = 40;
constexpr int kClaimLife = 2;  ///< evaluations after which a claim no longer stands

uint64_t hash_of(std::string_view text) {
  return base::buffer_hash(text.data(), text.size(), 0);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string origin_of_event(const trace::Event& event) {
  return fmt::format("trace event {}", event.seq);
}

template <typename Use>
void for_each_number(std::string_view text, const Use& use) {
  for (size_t i = 0; i < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      ++i;
      continue;
    }
    const size_t start = i;
    while (i < text.size() && (std::isdigit(static_cast<unsigned char>(text[i])) != 0 || text[i] == '.')) ++i;
    std::string_view number = text.substr(start, i - start);
    while (!number.empty() && number.back() == '.') number.remove_suffix(1);
    if (number.size() >= 3) use(number);
  }
}

int count_error_lines(std::string_view text) {
  int lines = 0;
  for (const std::string_view word : {"error:", "warning:", "Error:"})
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++lines;
  return lines;
}

std::string file_name(const std::string& path) {
  return lower(path.substr(path.find_last_of('/') + 1));
}

bool is_notes_path(const std::string& path) {
  const std::string name = file_name(path);
  for (const char* word : {"notes", "journal", "log.md", "progress", "history", "attempts", "experiments"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

bool saves_version(const std::string& command) {
  return command.find("git commit") != std::string::npos || command.find("git tag") != std::string::npos ||
         command.find("git stash") != std::string::npos;
}

template <typename T>
void push(std::deque<T>& window, T value, size_t most) {
  window.push_back(std::move(value));
  if (window.size() > most) window.pop_front();
}

}  // namespace

int count_goal_mentions(std::string_view text) {
  const std::string lowered = lower(text);
  int count = 0;
  for (const std::string_view word : {"geomean", "geometric mean", "the goal", "target"})
    for (size_t at = lowered.find(word); at != std::string::npos; at = lowered.find(word, at + 1)) ++count;
  return count;
}

std::pair<int, int> count_options(std::string_view text) {
  const std::string lowered = lower(text);
  bool plans = false;
  for (const char* word : {"option", "approach", "alternativ", "idea", "candidate", "next steps"})
    plans |= lowered.find(word) != std::string::npos;
  if (!plans) return {0, 0};
  int listed = 0, estimated = 0;
  for (size_t start = 0; start < lowered.size();) {
    const size_t end = std::min(lowered.find('\n', start), lowered.size());
    std::string_view line(lowered.data() + start, end - start);
    start = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" *#"), line.size()));
    const bool numbered =
        line.size() > 2 && std::isdigit(static_cast<unsigned char>(line[0])) != 0 && (line[1] == '.' || line[1] == ')');
    if (!numbered && !line.starts_with("- ") && !line.starts_with("option ")) continue;
    ++listed;
    const size_t digit = line.find_first_of("0123456789", numbered ? 2 : 0);
    estimated += digit != std::string_view::npos && line.find_first_of("%x", digit) != std::string_view::npos;
  }
  return {listed, estimated};
}

bool is_bench_path(const std::string& path) {
  const std::string name = file_name(path);
  for (const char* word : {"bench", "test", "harness", "timing", "evaluat", "measure"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

void TraceFollower::Since::count() {
  ++evaluation, ++bench, ++test, ++profile, ++total;
}

void TraceFollower::Since::evaluated() {
  before_last_evaluation = evaluation;
  evaluation = bench = test = 0;
}

void TraceFollower::on_event(const trace::Event& event) {
  ++events_;
  last_origin_ = origin_of_event(event);
  clock(event);
  const Json& body = event.body;
  if (const auto tag = body.find("strategy"); tag != body.end() && tag->is_string())
    strategies_.push_back(tag->get<std::string>());
  const std::string& kind = event.kind;
  if (kind == "run_start") return run_start(event);
  if (kind == "message") return message(event);
  if (kind == "tool_call") return tool_call(event);
  if (kind == "tool_result") return tool_result(event);
  if (kind == "edit") return edit_event(event);
  if (kind == "evaluation") return evaluation(event);
  if (kind == "compaction") ++compactions_;
  if (kind == "claim" && body.contains("claims") && body["claims"].is_array()) {
    for (const auto& name : body["claims"])
      if (name.is_string()) claim(name.get<std::string>(), trace::text_at(body, "text"), last_origin_);
  }
  if (kind == "question") {
    asked_.push_back(
        {trace::text_at(body, "id"), trace::text_at(body, "category"), trace::text_at(body, "text"), last_origin_});
  }
  if (kind == "answer") {
    ++answers_;
    const std::string id = trace::text_at(body, "question");
    const auto is_it = [&](const AskedQuestion& question) { return question.id == id; };
    std::erase_if(open_, is_it);
    if (const auto found = std::find_if(asked_.rbegin(), asked_.rend(), is_it);
        !trace::truth_at(body, "answered") && found != asked_.rend())
      open_.push_back(*found);
  }
  if (kind == "judge") {
    ++judgements_;
    heldout_ += trace::value_at(body, "figures").dump().find("hidden") != std::string::npos;
  }
  if (kind == "budget")
    budgets_[trace::text_at(body, "name")] = {trace::number_at(body, "used"), trace::number_at(body, "limit")};
}

void TraceFollower::clock(const trace::Event& event) {
  if (event.time <= 0) return;
  if (trace::text_at(event.body, "what") == "resumed" && last_time_ > 0) paused_s_ += event.time - last_time_;
  last_time_ = std::max(last_time_, event.time);
}

void TraceFollower::run_start(const trace::Event& event) {
  has_run_start_ = true;
  started_ = event.time;
  goal_ = trace::text_at(event.body, "goal");
  const Json& budget = trace::value_at(event.body, "budget");
  if (budget.is_object())
    for (const char* name : {"minutes", "evaluations", "tokens", "cost_usd"})
      if (const double limit = trace::number_at(budget, name); limit > 0) budgets_[name] = {0, limit};
}

void TraceFollower::message(const trace::Event& event) {
  const std::string role = trace::text_at(event.body, "role"), text = trace::text_at(event.body, "text");
  if (role == "agent") return agent_message(text, last_origin_);
  remember_numbers(text);
}

void TraceFollower::agent_message(const std::string& text, const std::string& origin) {
  ++agent_messages_;
  message_origin_ = origin;
  push(goal_mentions_, count_goal_mentions(text), kMessageWindow);
  asks_permission_ = signals::asks_permission(text);
  if (const auto [listed, estimated] = count_options(text); listed > 1)
    options_ = listed, options_estimated_ = estimated;
  if (errors_pending_ > 0) {
    const std::string lowered = lower(text);
    if (lowered.find("error") != std::string::npos || lowered.find("warning") != std::string::npos) errors_pending_ = 0;
  }
  const auto claims = claims_in(text);
  for (const auto& name : claims) claim(name, claiming_sentence(text, name), origin);
  explanation_ = claims.contains("cause") && has_number(text) ? text : "";
}

void TraceFollower::claim(const std::string& said, const std::string& sentence, const std::string& origin) {
  const std::string name = said == "goal_reached" ? "done" : said;
  Claim claim{sentence, origin, evaluations_, all_edits(), edits(&Since::evaluation), has_number(sentence)};
  for_each_number(sentence,
                  [&](std::string_view number) { claim.number_is_on_record |= numbers_.contains(hash_of(number)); });
  if (name == "limit" && !first_limit_edits_) first_limit_edits_ = all_edits(), first_limit_evaluations_ = evaluations_;
  claims_[name] = std::move(claim);
}

void TraceFollower::tool_call(const trace::Event& event) {
  ++tool_calls_;
  ++steps_since_evaluation_;
  const Json& body = event.body;
  const std::string kind = trace::text_at(body, "kind"), tool = trace::text_at(body, "tool");
  const std::string id = trace::text_at(body, "id");
  push(tool_kinds_, kind, kToolWindow);
  reread_.call(id, tool, body);
  const std::string command = trace::shell_command_of(tool, trace::value_at(body, "input"));
  open_calls_[id] = {kind, command};
  bool edits = kind == "edit";
  std::vector<std::string> kinds = {kind};
  if (const Json& also = trace::value_at(body, "also"); also.is_array())
    for (const auto& other : also)
      if (other.is_string()) kinds.push_back(other.get<std::string>());
  // A command that edits and then runs has edited first.
  for (const auto& one : kinds) edits |= one == "edit";
  if (edits) edit_call(event);
  for (const auto& one : kinds) {
    if (one == "profiler") {
      ++profiler_runs_;
      profile_origin_ = last_origin_;
      by_calls_.profile = by_events_.profile = 0;
    }
    if (one == "benchmark") by_calls_.bench = by_events_.bench = 0;
    has_research_ |= one == "documentation" || one == "other_read";
  }
  if (command.empty()) return;
  has_commands_ = true;
  if (command.find("test") != std::string::npos) by_calls_.test = by_events_.test = 0;
  if (saves_version(command)) saves_since_evaluation_ = has_saves_ = true;
}

void TraceFollower::edit_call(const trace::Event& event) {
  by_calls_.count();
  const Json& body = event.body;
  const Json& input = trace::value_at(body, "input");
  const EditLook look = look_at_edit(trace::text_at(body, "tool"), input);
  if (!look.added.empty() || look.knows_old) {
    has_edit_texts_ = true;
    compared_sizes_.insert(look.compared_sizes.begin(), look.compared_sizes.end());
  }
  if (look.changes_number_type) type_change_origin_ = last_origin_;
  past_edit({look.changed_lines, look.literals_only, hash_of(look.removed), hash_of(look.added)});
  if (const Json& writes = trace::value_at(body, "writes"); writes.is_array())
    for (const auto& path : writes)
      if (path.is_string()) written_path(path.get<std::string>(), last_origin_);
}

void TraceFollower::edit_event(const trace::Event& event) {
  by_events_.count();
  const Json& body = event.body;
  written_path(trace::text_at(body, "file"), last_origin_);
  if (by_calls_.total > 0) return;  // the calls said the same in more detail
  const auto lines = trace::integer_at(body, "lines_added") + trace::integer_at(body, "lines_removed");
  past_edit({static_cast<int>(lines), trace::truth_at(body, "params_only"), 0, 0});
}

void TraceFollower::past_edit(PastEdit edit) {
  if (edit.removed != edit.added)
    for (const auto& earlier : past_edits_)
      edit.reverts |= earlier.removed == edit.added && earlier.added == edit.removed;
  push(past_edits_, edit, kPastEdits);
}

void TraceFollower::written_path(const std::string& path, const std::string& origin) {
  if (is_bench_path(path)) bench_edit_origin_ = origin;
  if (is_notes_path(path)) notes_at_ = evaluations_;
}

void TraceFollower::tool_result(const trace::Event& event) {
  const Json& body = event.body;
  const std::string id = trace::text_at(body, "id");
  const Json& value = trace::value_at(body, "text");
  static const std::string kNone;
  const std::string& text = value.is_string() ? value.get_ref<const std::string&>() : kNone;
  const auto before = reread_.figures();
  reread_.result(id, text, true);
  const auto& after = reread_.figures();
  Result result{after.result_chars - before.result_chars, after.own_chars - before.own_chars, 0};
  const auto call = open_calls_.find(id);
  if (call != open_calls_.end()) {
    if (call->second.kind == "other_read" || call->second.kind == "documentation") result.reference = result.chars;
    if (!call->second.command.empty()) command_ended(call->second.command, text, trace::truth_at(body, "is_error"));
    open_calls_.erase(call);
  }
  window_.chars += result.chars, window_.own += result.own, window_.reference += result.reference;
  results_.push_back(result);
  if (results_.size() > kResultWindow) {
    const Result& old = results_.front();
    window_.chars -= old.chars, window_.own -= old.own, window_.reference -= old.reference;
    results_.pop_front();
  }
  errors_pending_ += count_error_lines(text);
  remember_numbers(text);
}

void TraceFollower::command_ended(const std::string& command, const std::string& text, bool is_error) {
  const uint64_t outcome = hash_of(without_numbers(text)) ^ static_cast<uint64_t>(is_error);
  const bool again = command == last_command_ && outcome == last_outcome_hash_;
  command_streak_ = again ? command_streak_ + 1 : 1;
  last_command_ = command;
  last_outcome_hash_ = outcome;
  last_outcome_ = text.substr(0, 200);
}

void TraceFollower::remember_numbers(const std::string& text) {
  for_each_number(text, [&](std::string_view number) { numbers_.insert(hash_of(number)); });
}

void TraceFollower::evaluation(const trace::Event& event) {
  ++evaluations_;
  evaluation_origin_ = last_origin_;
  steps_since_evaluation_ = 0;
  by_calls_.evaluated();
  by_events_.evaluated();
  const auto number = static_cast<int>(trace::integer_at(event.body, "number"));
  if (event.body.contains("commit")) kept_[number] = !trace::text_at(event.body, "commit").empty();
  saves_since_evaluation_ = false;
  settings(trace::value_at(event.body, "memo"));
  if (auto found = budgets_.find("evaluations"); found != budgets_.end()) found->second.first = evaluations_;
}

void TraceFollower::settings(const Json& memo) {
  if (!memo.is_object() || !memo.contains("settings") || !memo["settings"].is_object()) return;
  levels_of_change_.reset();
  for (const auto& [name, value] : memo["settings"].items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    levels_[name].insert(text);
    const auto before = settings_.find(name);
    if (before != settings_.end() && before->second != text) {
      const auto levels = static_cast<int>(levels_[name].size());
      levels_of_change_ = std::min(levels_of_change_.value_or(levels), levels);
    }
    settings_[name] = text;
  }
}

const Claim* TraceFollower::standing(const std::string& name) const {
  const auto found = claims_.find(name);
  if (found == claims_.end() || evaluations_ - found->second.evaluations >= kClaimLife) return nullptr;
  if (name == "done" && all_edits() > found->second.edits) return nullptr;
  return &found->second;
}

std::optional<bool> TraceFollower::is_kept(int evaluation) const {
  if (const auto found = kept_.find(evaluation); found != kept_.end()) return found->second;
  if (saves_since_evaluation_) return true;
  if (has_commands_ && evaluations_ > 0) return has_saves_;
  return std::nullopt;
}

std::optional<int> TraceFollower::limit_age_edits() const {
  if (!first_limit_edits_) return std::nullopt;
  return all_edits() - *first_limit_edits_;
}

}  // namespace ks::signals
