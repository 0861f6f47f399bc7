#include "agents/agent_tools.h"

#include <algorithm>
#include <cstdlib>

namespace ks::agents {
namespace {

constexpr size_t kMostText = 30000;  ///< characters of one result
constexpr double kShellSeconds = 120;

Json schema(std::initializer_list<std::pair<const char*, Json>> properties, std::vector<std::string> required) {
  Json object = Json::object();
  for (const auto& [name, type] : properties) object[name] = type;
  return {{"type", "object"}, {"properties", object}, {"required", required}, {"additionalProperties", false}};
}

Json text(const char* description) {
  return {{"type", "string"}, {"description", description}};
}

Json number(const char* description) {
  return {{"type", "integer"}, {"description", description}};
}

Json flag(const char* description) {
  return {{"type", "boolean"}, {"description", description}};
}

std::string argument(const Json& arguments, const char* name) {
  return base::require<std::string>(arguments, name, "the call's arguments");
}

std::string end_in_words(const base::ProcessResult& result, double limit_s) {
  if (result.timed_out) return fmt::format("\n[ended by us after {:.0f} s]", limit_s);
  if (result.signal != 0) return fmt::format("\n[ended by signal {}]", result.signal);
  return result.exit_code == 0 ? "" : fmt::format("\n[exit code {}]", result.exit_code);
}

/// A program behind the walls, in the work folder.
base::ProcessResult run_inside(const ToolSetup& setup, std::vector<std::string> argv, const std::string& input,
                               double limit_s) {
  base::SpawnOptions options;
  options.argv = std::move(argv);
  options.folder = setup.isolation.work.string();
  Isolated isolated = isolate(options, setup.isolation);
  isolated.options.input = input;
  isolated.options.timeout_s = std::min(limit_s, setup.longest_s);
  isolated.options.max_output_bytes = 4u << 20;
  isolated.options.clear_env = true;
  for (const char* name : {"PATH", "LANG", "LC_ALL"})
    if (const char* value = std::getenv(name); value != nullptr) isolated.options.env.emplace_back(name, value);
  isolated.options.env.emplace_back("HOME", setup.home.string());
  isolated.options.env.emplace_back("KERNELSEEK_CACHE", setup.cache.string());
  return base::run_process(isolated.options);
}

ToolOutcome outcome_of(const base::ProcessResult& result, double limit_s) {
  std::string said = result.out;
  if (!result.err.empty()) said += (said.empty() || said.back() == '\n' ? "" : "\n") + result.err;
  return {shortened(said, kMostText) + end_in_words(result, limit_s), !result.ok()};
}

ToolOutcome shell(const ToolSetup& setup, const Json& arguments) {
  const double limit_s = std::max(1.0, base::value_or(arguments, "seconds", kShellSeconds));
  return outcome_of(run_inside(setup, {"bash", "-c", argument(arguments, "command")}, "", limit_s), limit_s);
}

ToolOutcome own_command(const ToolSetup& setup, const std::string& name, const Json& arguments) {
  constexpr double kSeconds = 1800;
  std::vector<std::string> argv = {setup.kernelseek, name, setup.candidate, "--operator", setup.operator_name};
  if (name == "profile") argv.insert(argv.end(), {"--grid", setup.grid, "--scenario", argument(arguments, "scenario")});
  const auto function = base::value_or<std::string>(arguments, "function", "");
  if (!function.empty()) argv.insert(argv.end(), {"--function", function});
  return outcome_of(run_inside(setup, argv, "", kSeconds), kSeconds);
}

}  // namespace

std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t head = most / 2, tail = text.size() - most / 2;
  // Not in the middle of a character.
  const auto is_inside = [&](size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  while (head > 0 && is_inside(head)) --head;
  while (is_inside(tail)) ++tail;
  return fmt::format("{}\n[{} characters left out]\n{}", text.substr(0, head), tail - head, text.substr(tail));
}

std::vector<ToolOffer> tool_offers(bool is_helper) {
  std::vector<ToolOffer> offers = {
      {"shell", "Runs a command with bash in your folder; there is no network.",
       schema({{"command", text("The command line")}, {"seconds", number("Ended after this many; default 120")}},
              {"command"})},
      {"read", "Shows a text file, with line numbers.",
       schema({{"path", text("Relative to your folder, or absolute")},
               {"from", number("First line, 1 or more")},
               {"lines", number("How many; default 2000")}},
              {"path"})},
      {"write", "Writes a whole file in your folder; what was there is replaced.",
       schema({{"path", text("Relative to your folder")}, {"content", text("All of it")}}, {"path", "content"})},
      {"edit", "Replaces a text in a file by another. The old text must occur exactly once, or say all.",
       schema({{"path", text("Relative to your folder")},
               {"old", text("What is there, exactly")},
               {"new", text("What shall be there")},
               {"all", flag("Every occurrence")}},
              {"path", "old", "new"})},
      {"evaluate",
       "Has the candidate judged as it lies in your folder now: which scenarios are right, how fast each is. Uses up "
       "one evaluation of the budget.",
       schema({{"filter", text("Only these scenarios, a regular expression; says nothing about the goal")},
               {"check_only", flag("Right or wrong only, no times")},
               {"changed", text("What you changed, in a line")}},
              {})},
      {"profile", "A profiler's raw report of the candidate on one scenario.",
       schema({{"scenario", text("Its name")}}, {"scenario"})},
      {"disassemble", "The candidate's machine code, as the disassembler prints it.",
       schema({{"function", text("Only this kernel, by mangled name (GPU)")}}, {})},
      {"ask", "Asks for the question that the evidence calls for now, if any.", schema({}, {})}};
  if (!is_helper)
    offers.push_back({"helper",
                      "Has another agent do a piece of work in the same folder, with the same tools, and report back.",
                      schema({{"task", text("All that it needs to know")}}, {"task"})});
  return offers;
}

ToolOutcome run_tool(const ToolSetup& setup, const std::string& name, const Json& arguments) {
  try {
    if (name == "shell") return shell(setup, arguments);
    if (name == "profile" || name == "disassemble") return own_command(setup, name, arguments);
    if (name == "read" || name == "write" || name == "edit") {
      constexpr double kSeconds = 60;
      const auto result = run_inside(setup, {setup.kernelseek, "agent-tool", name}, base::to_line(arguments), kSeconds);
      return {shortened(result.out, kMostText) + result.err + end_in_words(result, kSeconds), !result.ok()};
    }
    std::vector<std::string> names;
    for (const auto& offer : tool_offers(false)) names.push_back(offer.name);
    return {fmt::format("there is no tool \"{}\"; there are: {}", name, fmt::join(names, ", ")), true};
  } catch (const Error& e) {
    return {e.what(), true};
  }
}

namespace {

ToolOutcome read_lines_of(const Json& arguments) {
  const auto path = argument(arguments, "path");
  if (base::fs::is_directory(path)) return {fmt::format("{} is a folder; list it with the shell", path), true};
  const auto lines = base::read_lines(path);
  const auto from = static_cast<size_t>(std::max<int64_t>(1, base::value_or<int64_t>(arguments, "from", 1)));
  const auto count = static_cast<size_t>(std::max<int64_t>(1, base::value_or<int64_t>(arguments, "lines", 2000)));
  std::string shown;
  for (size_t i = from - 1; i < lines.size() && i < from - 1 + count; ++i)
    shown += fmt::format("{:6}\t{}\n", i + 1, lines[i]);
  if (from > lines.size()) shown = fmt::format("[{} has {} lines]\n", path, lines.size());
  return {shown, false};
}

ToolOutcome write_whole(const Json& arguments) {
  const base::fs::path path = argument(arguments, "path");
  const auto content = argument(arguments, "content");
  if (!path.parent_path().empty()) base::make_folder(path.parent_path());
  base::write_file_atomically(path, content);
  return {fmt::format("{}: {} bytes written", path.string(), content.size()), false};
}

ToolOutcome edit_text(const Json& arguments) {
  const auto path = argument(arguments, "path"), before = argument(arguments, "old"),
             after = argument(arguments, "new");
  if (before.empty()) return {"\"old\" is empty; use write for a new file", true};
  std::string content = base::read_file(path);
  size_t count = 0;
  for (size_t at = content.find(before); at != std::string::npos; at = content.find(before, at + before.size()))
    ++count;
  if (count == 0) return {fmt::format("{}: the old text does not occur; read the file again", path), true};
  const bool all = base::value_or(arguments, "all", false);
  if (count > 1 && !all)
    return {fmt::format("{}: the old text occurs {} times; give more of its surroundings, or say all", path, count),
            true};
  for (size_t at = content.find(before); at != std::string::npos; at = content.find(before, at + after.size()))
    content.replace(at, before.size(), after);
  base::write_file_atomically(path, content);
  return {fmt::format("{}: {} replaced", path, count), false};
}

}  // namespace

ToolOutcome file_tool(const std::string& name, const Json& arguments) {
  try {
    if (name == "read") return read_lines_of(arguments);
    if (name == "write") return write_whole(arguments);
    if (name == "edit") return edit_text(arguments);
    return {fmt::format("unknown tool \"{}\"", name), true};
  } catch (const std::exception& e) {
    return {e.what(), true};
  }
}

}  // namespace ks::agents
