// One event of a trace: what happened in a run, in order. docs/formats/trace.md documents every kind and key.
#pragma once

#include <cstdint>
#include <string>

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
///   message      {role: "human"|"agent"|"system", text}                       claim {text, claims: [names]}
///   tool_call    {id, tool, kind, input}      kind: profiler|disassembly|build|benchmark|documentation|
///                                                   own_source_read|other_read|edit|helper|other
///   tool_result  {id, text, bytes, is_error}
///   edit         {file, hash, lines_added, lines_removed, params_only, summary}
///   evaluation   {number, record, outcome, geomean, correct, total, candidate_hash}
///   question     {id, category, text, facts: [..], questioner, evaluation, focus: scenario name or ""}
///   answer       {question, answered, evidence}
///   judge        {decision: "met"|"not_met"|"undecided", goal, figures, question, record}
///   usage        {input_tokens, output_tokens, cached_tokens, cost_usd}
///   budget       {name, used, limit}                                          stage {name, seconds}
///   note         {text}                                                       compaction {}

}  // namespace ks::trace
