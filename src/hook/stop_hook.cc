#include "hook/stop_hook.h"

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "judge/facts.h"

namespace ks::hook {
namespace {

/// Refusals in a row for one state of the run.
struct Count {
  int evaluation = -1;
  int refused = 0;
};

Count read_count(const base::fs::path& path) {
  Count count;
  if (!base::fs::exists(path)) return count;
  const Json json = base::read_json_file(path.string());
  count.evaluation = base::value_or(json, "evaluation", -1);
  count.refused = base::value_or(json, "refused", 0);
  return count;
}

Reply refusal(Dialect dialect, const std::string& text) {
  switch (dialect) {
    case Dialect::kBlock:
      return {base::to_line({{"decision", "block"}, {"reason", text}}) + "\n", "", 0};
    case Dialect::kDeny:
      return {base::to_line({{"decision", "deny"}, {"reason", text}}) + "\n", "", 0};
    case Dialect::kFollowup:
      return {base::to_line({{"followup_message", text}}) + "\n", "", 0};
    case Dialect::kExitCode:
      return {"", text + "\n", 2};
  }
  return {};
}

Reply pass(Dialect dialect) {
  return {dialect == Dialect::kExitCode ? "" : "{}\n", "", 0};
}

std::string read_input(double timeout_s) {
  const int64_t start = base::monotonic_ns();
  constexpr size_t kMost = 4u << 20;
  std::string text;
  char buffer[65536];
  while (text.size() < kMost) {
    const double left = timeout_s - static_cast<double>(base::monotonic_ns() - start) * 1e-9;
    pollfd entry{STDIN_FILENO, POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left * 1000) + 1) <= 0) break;
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
    if (Json::accept(text)) break;  // a program may keep its end open
  }
  return text;
}

}  // namespace

Dialect dialect_of(const Json& input) {
  const auto name = base::value_or<std::string>(input, "hook_event_name", "");
  if (name == "AfterAgent") return Dialect::kDeny;
  if (name == "stop" || input.contains("loop_count")) return Dialect::kFollowup;
  if (name == "Stop" || name == "SubagentStop") return Dialect::kBlock;
  return Dialect::kExitCode;
}

Reply answer(const std::string& input, const base::fs::path& told, const base::fs::path& counts) {
  Dialect dialect = Dialect::kExitCode;
  try {
    if (!input.empty()) {
      const Json json = base::parse_json(input, "the hook's input");
      if (!json.is_object()) return pass(dialect);
      dialect = dialect_of(json);
      // A helper's end is not the run's; a turn that was interrupted or failed is the driver's matter.
      if (base::value_or<std::string>(json, "hook_event_name", "") == "SubagentStop") return pass(dialect);
      if (dialect == Dialect::kFollowup && base::value_or<std::string>(json, "status", "completed") != "completed")
        return pass(dialect);
    }
    const judge::Facts facts = judge::read_facts(told / "facts.json");
    Count count = read_count(counts / "refused.json");
    if (count.evaluation != facts.evaluation) count = {facts.evaluation, 0};
    const auto said = judge::answer_stop(facts, judge::content_hash(facts.candidate), count.refused);
    count.refused = said.refuse ? count.refused + 1 : 0;
    // Counted before it is said: a count that cannot be kept must not refuse for ever.
    base::write_file_atomically(counts / "refused.json",
                                base::to_line({{"evaluation", count.evaluation}, {"refused", count.refused}}) + "\n");
    return said.refuse ? refusal(dialect, said.text) : pass(dialect);
  } catch (const std::exception& e) {
    Reply reply = pass(dialect);
    reply.err = fmt::format("kernelseek hook stop: {}\n", e.what());
    return reply;
  }
}

Reply stop_hook(const base::fs::path& run_folder, double timeout_s) {
  return answer(read_input(timeout_s), run_folder / "told", run_folder / "hook");
}

}  // namespace ks::hook
