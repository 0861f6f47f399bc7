// Evidence that consists of rows of evaluations, for evidence_facts.cc.
#pragma once

#include "signals/evidence_facts.h"

namespace ks::signals {

using Sources = EvidenceSources;
inline constexpr size_t kRowsShown = 3;

/// "12.5 %", "0.41x"; the latest timed evaluation by number.
std::string percent(double share);
std::string times(double ratio);
std::string timed_origin(const Sources& s);
/// At most `bytes` of the text, cut between characters.
std::string beginning(std::string_view text, size_t bytes);
/// Offers a value for a question's slot.
void slot(Evidence& evidence, const char* name, std::string value);

// Each gives the facts of the signals that evidence_facts.cc lists for it.
Evidence worst_rows(const Sources& s);
Evidence ratio_ends(const Sources& s);
Evidence geomean_facts(const Sources& s);
Evidence regressed_rows(const Sources& s);
Evidence step_facts(const Sources& s);
Evidence noise_facts(const Sources& s);
Evidence loss_facts(const Sources& s);
Evidence course_facts(const Sources& s);
Evidence bound_facts(const Sources& s);
Evidence outside_facts(const Sources& s);
Evidence switch_facts(const Sources& s);
Evidence unswept_facts(const Sources& s);
Evidence axis_facts(std::string_view signal, const Sources& s);
Evidence verdict_facts(const Sources& s);
Evidence error_facts(const Sources& s);
Evidence never_facts(const Sources& s);

}  // namespace ks::signals
