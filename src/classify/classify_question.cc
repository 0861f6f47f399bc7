// Categories of a question: weighted patterns; a category that reaches the least score is a label, and there may be
// several. The words alone decide only part of it (the same words serve different ends in different situations), so the
// scores come with the words that gave them, for a person to judge.
#include <algorithm>
#include <map>

#include "classify/classify.h"
#include "classify/patterns.h"

namespace ks::classify {
namespace {

struct CategoryPattern {
  std::string_view category;
  double weight = 0;
  std::string_view pattern;
};

// clang-format off
constexpr CategoryPattern kCategoryPatterns[] = {
    {"measurement_check", 1.0, "measure|measured|measuring|measurement*|timer*|timing|timed|clock|clocks|counter|counters"},
    {"measurement_check", 1.0, "noise|noisy|variance|spread|interval|repeat|repeats|repeated|sample|samples|median|mean"},
    {"measurement_check", 1.0, "same|right|current binary|build|version|executable"},
    {"measurement_check", 0.6, "profiler|profile|trace|reading|number|numbers|figure|figures"},
    {"measurement_check", 1.0, "how|where do|does|did .. know|come|comes from|sure"},
    {"measurement_check", 0.6, "how do you know"},
    {"measurement_check", 1.0, "throttl*|frequency|warmup|warm|cold|stale|reproduc*"},
    {"measurement_check", 0.6, "trust|believe|real|actually"},
    {"benchmark_validity", 1.2, "benchmark*|grid|scenarios|workload*|realistic|representative|coverage|covered"},
    {"benchmark_validity", 1.0, "shapes|sizes|inputs|distribution|features|cases|held|unseen"},
    {"benchmark_validity", 1.0, "reference|baseline|rival|competitor .. fair|strongest|best|same|latest|version|settings|tuned"},
    {"benchmark_validity", 1.0, "fair|unfair|comparable|apples|equal"},
    {"benchmark_validity", 1.0, "tolerance*|accuracy|error|errors|precise|correctness|wrong|pass"},
    {"benchmark_validity", 0.8, "users|user|practice|production|real use|life|world|call|calls"},
    {"benchmark_validity", 0.8, "which|what .. missing|absent|never tested|covered|touched|run"},
    {"agent_process", 1.2, "why|what .. stop|stopped|stopping|done|finished|conclude|concluded|complete"},
    {"agent_process", 1.0, "goal|plan|budget|progress|learned|learnt|lesson|lessons|taught|teach"},
    {"agent_process", 1.0, "last|recent|previous|past attempt*|evaluation*|edits|hours|steps|changes"},
    {"agent_process", 1.0, "tried|attempted|already .. so far|before|again|twice"},
    {"agent_process", 1.0, "what are|have|did you doing|done|do|try|learn*|change*"},
    {"agent_process", 0.8, "next|now|stuck|waiting|helper*|agents|commit|log|record|notes|written"},
    {"bound_differencing", 1.4, "bound|roofline|roof|peak|theoretical|ideal|speed of light"},
    {"bound_differencing", 1.2, "how far|close from|to .. peak|bound|limit|optimal|reference|roofline"},
    {"bound_differencing", 1.2, "where|what does|do|is|happens .. time go|spent|spend|left|lost|missing"},
    {"bound_differencing", 1.0, "breakdown|pieces|parts|components|fraction|overhead|outside"},
    {"bound_differencing", 1.0, "difference|gap between"},
    {"bound_differencing", 1.0, "gap|distance|difference .. between|consist*|made|explained|from|account*"},
    {"bound_differencing", 0.8, "least|minimum|shortest|lowest time|traffic|work|bytes"},
    {"gap_triage", 1.4, "which|what .. configurations|configuration|configs|config|rows|row|shapes|cases|scenarios|ones"},
    {"gap_triage", 1.2, "slowest|worst|behind|lose|loses|losing|losses|below|hold|holds|drag*|lag*|bottom"},
    {"gap_triage", 1.0, "in common|share|separates|group|groups|pattern|distinguish*"},
    {"gap_triage", 1.0, "regress*|slower .. than|before|which|now"},
    {"gap_triage", 1.0, "only|just|mostly|everywhere|all .. decode|prefill|causal|head|varlen|paged|long|short|small|large"},
    {"hypothesis_check", 1.3, "hypothes*|explanation*|explain|explains|theory|predict*|expect|expected|prediction"},
    {"hypothesis_check", 1.2, "cause|causes|caused|because|reason|mechanism|why is|does|did"},
    {"hypothesis_check", 1.2, "what|how .. evidence|prove|proves|confirm|confirms|refute|rule|test|verify|falsif*"},
    {"hypothesis_check", 1.0, "what|anything else .. could|would|might|produce|explain"},
    {"hypothesis_check", 1.0, "if .. then|would|should .. see|show|change|move|drop"},
    {"hypothesis_check", 0.8, "^ why"},
    {"challenge_a_limit", 1.5, "ceiling|limit|limits|limited|impossible|infeasible|unavoidable|inherent|fundamental|genuine|hard"},
    {"challenge_a_limit", 1.2, "can't|cannot|can not|impossible|be .. faster|better|improved|beaten|done"},
    {"challenge_a_limit", 1.2, "who|what|why says|said|say|makes|stops|prevents|decided"},
    {"challenge_a_limit", 1.0, "assum*|constraint*|restriction*|good enough|enough"},
    {"challenge_a_limit", 1.0, "reference|fa3|cudnn|baseline|others .. reaches|reach|does|do|manage*|achieve* .. it|that|same|better"},
    {"strategy_options", 1.4, "option|options|alternative*|approach|approaches|strategy|strategies|ways|idea|ideas|directions"},
    {"strategy_options", 1.2, "what|which|how else|other .. could|can|would|try|possible|tried"},
    {"strategy_options", 1.0, "worth|promising|priorit*|rank*|trade|tradeoff*|cheapest|cost|gain .. if|would|most|of|and|it"},
    {"strategy_options", 1.0, "what should|would|could we|you|be .. next|do|try|first"},
    {"strategy_options", 1.0, "redesign|rewrite|start over|combine|combined|together|different design|opposite"},
    {"strategy_options", 1.0, "how do|did|have others|other|they|people .. solve|solved|do|handle"},
};
// clang-format on

}  // namespace

std::vector<CategoryScore> classify_question(std::string_view text) {
  std::map<std::string, CategoryScore> scores;
  const auto words = words_of(without_quoted(text));
  for (const CategoryPattern& rule : kCategoryPatterns) {
    const std::string found = find_pattern(rule.pattern, words);
    if (found.empty()) continue;
    CategoryScore& score = scores[std::string(rule.category)];
    score.category = std::string(rule.category);
    score.score += rule.weight;
    score.because.push_back(found);
  }
  std::vector<CategoryScore> labels;
  for (auto& [category, score] : scores)
    if (score.score >= kLeastScore) labels.push_back(std::move(score));
  std::stable_sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  return labels;
}

}  // namespace ks::classify
