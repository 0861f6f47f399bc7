// The steps of a run, one function each; run_task.cc puts them in order.
#pragma once

#include "run/session.h"

namespace ks::run {

/// Judges the files as they lie in work/: keeps the version, evaluates its copy, writes the record, then the event.
void evaluate_version(Session& session, const agents::AgentStep& step);

/// Asks the questioner; a question becomes a message to the agent. Returns it.
std::optional<Asked> ask_question(Session& session, bool stop_requested);

/// Puts what a person typed before the agent.
void take_human_messages(Session& session);

/// Answers a claim: by known figures where they already say no, else by the judge. True if the goal is met.
bool answer_claim(Session& session, const agents::AgentStep& step);

/// The judge's decision on what lies in work/ now.
judge::Judgement judge_now(Session& session);

/// Records a decision. A fresh one that is not "met" stands for these files: they are not judged again until changed,
/// so that nobody gets a better throw of the dice by asking twice.
void record_judgement(Session& session, const judge::Judgement& judgement, bool is_fresh, const std::string& question);

/// The judge's last word on exactly the files that lie in work/ now; nothing where they were not judged afresh.
std::optional<judge::Judgement> known_judgement(const Session& session);

/// "tokens" or "cost" where the agent's model has used up what it may; "" if not.
std::string model_budget_spent(const Session& session);

/// Why the run must end now by its budget; "" if it need not.
std::string budget_spent(const Session& session);

/// Puts a message before the agent and into the trace; `question`: the id of the question that it carries.
void send_message(Session& session, const std::string& source, const agents::AgentMessage& message,
                  const std::string& question = "");

/// Sends a question that was chosen, as its questioner's.
void send_question(Session& session, const Asked& asked);

/// Writes the `answer` events of the questions that can be looked back on; at the end of all.
void record_answers(Session& session, bool is_end);

/// "eval 3/20 | best 0.62x | 2:10 left | asked gap-worst"
std::string status_line(const Session& session);

}  // namespace ks::run
