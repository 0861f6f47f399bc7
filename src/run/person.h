// The questioner `human`: a person asks, at a terminal or on the live page. At a question time (two evaluations after
// the last, or at a claim) the run waits until something was typed, until the person says to go on, or until no time is
// left; what was typed on the page before is sent without waiting. The bank's three best questions are shown beside and
// may be sent by their number. What a person writes is sent as it is, classified and looked over for leaks, and all of
// that is recorded.
#pragma once

#include "run/run_task.h"
#include "run/session.h"

namespace ks::run {

/// Throws ks::Error where no person can be reached: neither a terminal nor a page.
void check_person(const Person& person);

/// The questioner of a session whose person asks.
Questioner make_person(Session& session, const Person& person);

/// The scenario that a text names, as "name" or "category/name", the longest one; "" where it names none.
std::string scenario_named(const std::string& text, const std::vector<agents::ScenarioFigures>& scenarios);

}  // namespace ks::run
