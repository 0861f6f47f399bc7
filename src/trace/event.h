// One event of a trace: what happened in a run, in order. docs/formats/trace.md documents every kind and key.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"

namespace ks::trace {

/// An event; `body` holds the keys of its kind.
struct Event {
  int64_t seq = 0;      ///< 1, 2, … within a trace
  double time = 0;      ///< seconds since the epoch; 0 if the source had none
  std::string kind;     ///< see kinds below
  std::string session;  ///< "main", or a helper's or session's name
  Json body = Json::object();
};

/// Kinds that every producer and reader agrees on:
///   run_start    {task, operator, goal, questioner, agent, seed, budget}      run_end {reason, decision}
///   session_start{session, parent, agent, model}                              session_end {reason}
///   message      {role: "human"|"agent"|"system", text, source}               claim {text, claims: [names]}
///   tool_call    {id, tool, kind, input, path}  kind: profiler|disassembly|build|benchmark|documentation|
///                                                   own_source_read|other_read|edit|helper|other
///   tool_result  {id, text, bytes, is_error}
///   edit         {file, hash, lines_added, lines_removed, params_only, summary}
///   evaluation   {number, record, outcome, geomean, correct, total, candidate_hash}
///   question     {id, category, text, facts: [..], questioner, evaluation, focus: scenario name or ""}
///   answer       {question, answered, evidence}
///   judge        {decision: "met"|"not_met"|"undecided", goal, figures, question, record}
///   usage        {input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, cost_usd, id}
///                of usage events with one id, the last one counts
///   budget       {name, used, limit}                                          stage {name, seconds}
///   note         {text}                                                       compaction {}
inline constexpr std::array<std::string_view, 18> kEventKinds = {
    "run_start", "run_end",     "session_start", "session_end", "message",  "claim",
    "tool_call", "tool_result", "edit",          "evaluation",  "question", "answer",
    "judge",     "usage",       "budget",        "stage",       "note",     "compaction"};

/// First line of every trace file.
inline constexpr const char* kTraceSchema = "kernelseek.trace/1";

/// What could not be read as it stood, by name; docs/formats/trace.md lists the names.
using Counters = std::map<std::string, int64_t>;

bool is_known_kind(std::string_view kind);

/// {"seq", "time", "kind", "session", "body"}, as a trace file's line holds it.
Json to_json(const Event& event);

}  // namespace ks::trace
