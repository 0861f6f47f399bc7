#include "run/answers.h"

#include <algorithm>

#include "trace/importer.h"

namespace ks::run {
namespace {

/// Calls `use` with every number of three characters and more; shorter ones are everywhere.
template <typename Use>
void for_each_number(const std::string& text, const Use& use) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0; i < text.size();) {
    if (!is_digit(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
    std::string number = text.substr(i, end - i);
    while (number.back() == '.') number.pop_back();
    if (number.size() >= 3) use(number);
    i = end;
  }
}

/// Kinds of calls that look at the machine or at what it printed, not at source.
bool is_measuring(const std::string& kind) {
  return kind == "profiler" || kind == "benchmark" || kind == "disassembly" || kind == "other";
}

}  // namespace

std::vector<Json> AnswerWatch::due(bool is_end) {
  while (const auto event = reader_.next()) take(*event);
  std::vector<Json> bodies;
  for (const Open& open : open_)
    if (is_end || open.evaluations.size() >= kEvaluations) bodies.push_back(body_of(open));
  // They leave the list when their events are read back: what was not written is due again.
  return bodies;
}

void AnswerWatch::take(const trace::Event& event) {
  const Json& body = event.body;
  if (event.kind == "question") return asked(event);
  if (event.kind == "answer")
    std::erase_if(open_, [&](const Open& open) { return open.seq == trace::integer_at(body, "asked"); });
  if (event.kind == "evaluation") evaluated(body);
  if (event.kind == "edit")
    for (Open& open : open_) open.changes.push_back(trace::text_at(body, "file"));
  if (event.kind == "tool_call") {
    const std::string kind = trace::text_at(body, "kind");
    // The run's own evaluation prints new figures whatever was asked: it is no answer by itself.
    const bool is_evaluation = trace::text_at(body, "tool") == "evaluate" ||
                               trace::value_at(body, "input").dump().find("kernelseek evaluate") != std::string::npos;
    kinds_[trace::text_at(body, "id")] = is_evaluation ? "" : kind;
    for (Open& open : open_) ++open.tools[kind];
    remember(trace::value_at(body, "input"));
  }
  if (event.kind == "tool_result") text(body, kinds_[trace::text_at(body, "id")]);
  if (event.kind == "message") text(body, trace::text_at(body, "role") == "agent" ? "message" : "");
}

void AnswerWatch::asked(const trace::Event& event) {
  const Json& log = trace::value_at(event.body, "log");
  open_.push_back({event.seq,
                   trace::text_at(event.body, "id"),
                   log.is_object() ? trace::text_at(log, "id") : "",
                   trace::text_at(event.body, "focus"),
                   {},
                   {},
                   {},
                   false,
                   "",
                   ""});
  remember(trace::value_at(event.body, "text"));
  remember(trace::value_at(event.body, "facts"));
}

void AnswerWatch::evaluated(const Json& body) {
  const Json& memo = trace::value_at(body, "memo");
  for (Open& open : open_) {
    open.evaluations.push_back(static_cast<int>(trace::integer_at(body, "number")));
    if (!memo.is_object()) continue;
    open.took_focus |= !open.focus.empty() && trace::text_at(memo, "objective") == open.focus;
    if (const auto change = trace::text_at(memo, "change"); !change.empty()) open.changes.push_back(change);
  }
}

void AnswerWatch::text(const Json& body, const std::string& kind) {
  const std::string words = trace::text_at(body, "text");
  if (kind == "message" || is_measuring(kind)) {
    const std::string number = new_number(words);
    for (Open& open : open_) {
      std::string& first = kind == "message" ? open.said : open.measured;
      if (first.empty()) first = number;
    }
  }
  remember(trace::value_at(body, "text"));
}

void AnswerWatch::remember(const Json& value) {
  for_each_number(value.is_string() ? value.get_ref<const std::string&>()
                                    : value.dump(-1, ' ', false, Json::error_handler_t::replace),
                  [&](const std::string& number) { numbers_.insert(number); });
}

std::string AnswerWatch::new_number(const std::string& text) const {
  std::string found;
  for_each_number(text, [&](const std::string& number) {
    if (found.empty() && !numbers_.contains(number)) found = number;
  });
  return found;
}

Json AnswerWatch::body_of(const Open& open) {
  std::vector<std::string> evidence;
  if (open.took_focus) evidence.push_back("it worked on " + open.focus);
  if (!open.measured.empty()) evidence.push_back("it measured " + open.measured);
  if (!open.said.empty()) evidence.push_back("it said " + open.said);
  std::vector<std::string> changes;
  for (const auto& change : open.changes)
    if (std::find(changes.begin(), changes.end(), change) == changes.end() && changes.size() < 8)
      changes.push_back(change);
  return {{"question", open.id},
          {"log", open.log_id},
          {"asked", open.seq},
          {"answered", !evidence.empty()},
          {"evidence", fmt::format("{}", fmt::join(evidence, "; "))},
          {"evaluations", open.evaluations},
          {"tools", open.tools},
          {"changes", changes}};
}

}  // namespace ks::run
