// What an agent program is started with: its command line, its environment, and a HOME of its own in the run's folder,
// so that nothing of the person's set-up leaks into a run but what the description names.
#include <cstdlib>

#include "agents/command_agent.h"

namespace ks::agents {

/// What is new for the program; for one that cannot resume, the prompt and everything that was said.
std::string CommandAgent::message_for(const AgentContext& context) const {
  const bool can_resume = !setup_.description.resume.empty() && !session_.empty();
  std::string text = can_resume ? "" : setup_.prompt;
  const size_t first =
      can_resume ? context.messages.size() - std::min(context.messages.size(), context.new_messages) : 0;
  for (size_t i = first; i < context.messages.size(); ++i)
    text += (text.empty() ? "" : "\n\n") + context.messages[i].text;
  if (setup_.description.evaluate_after_turn && !context.last_table.empty())
    text += fmt::format("{}Evaluation {} of the files as they lie:\n{}", text.empty() ? "" : "\n\n",
                        context.history.back().number, context.last_table);
  return text.empty() ? "Go on." : text;
}

/// The program's own HOME: files that are written for it, and the person's credentials in their places.
void CommandAgent::prepare_home(const std::map<std::string, std::string>& values) {
  if (setup_.home.empty()) return;
  base::make_folder(setup_.home);
  for (const auto& [name, content] : setup_.description.home_files) {
    base::make_folder((setup_.home / name).parent_path());
    base::write_file_atomically(setup_.home / name, filled(content, values));
  }
  setup_.isolation.bound.clear();
  const char* ours = std::getenv("HOME");
  for (const auto& name : setup_.description.credentials) {
    const base::fs::path from = base::fs::path(ours == nullptr ? "/" : ours) / name, to = setup_.home / name;
    if (!base::fs::exists(from)) continue;
    base::make_folder(to.parent_path());
    if (why_no_isolation().empty())
      setup_.isolation.bound.emplace_back(from, to);
    else if (!base::fs::exists(base::fs::symlink_status(to)))
      base::fs::create_symlink(from, to);
  }
}

/// The words of the description, with the options that this run has in the place of {options}.
std::vector<std::string> CommandAgent::command_line(bool can_resume) const {
  const auto& description = setup_.description;
  std::vector<std::string> words;
  for (const auto& word : can_resume ? description.resume : description.start) {
    if (word != "{options}") {
      words.push_back(word);
      continue;
    }
    if (!setup_.model.empty())
      words.insert(words.end(), description.model_option.begin(), description.model_option.end());
    if (std::getenv(description.endpoint.c_str()) != nullptr)
      words.insert(words.end(), description.endpoint_option.begin(), description.endpoint_option.end());
  }
  return words;
}

/// What the program gets of our environment, and what is set for it; nothing else.
std::vector<std::pair<std::string, std::string>> CommandAgent::environment(const std::string& message) const {
  std::vector<std::pair<std::string, std::string>> result;
  const char* path = std::getenv("PATH");
  const auto clients = base::cache_folder() / "clients" / "bin";
  result.emplace_back("PATH",
                      (path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : std::string(path)) + ":" + clients.string());
  for (const char* name : {"HOME", "LANG", "LC_ALL", "USER", "TERM"})
    if (const char* value = std::getenv(name); value != nullptr) result.emplace_back(name, value);
  for (const auto& name : setup_.description.environment)
    if (const char* value = std::getenv(name.c_str()); value != nullptr) result.emplace_back(name, value);
  for (const auto& [name, value] : setup_.description.set) result.emplace_back(name, value);
  if (!setup_.home.empty()) {
    std::erase_if(result, [](const auto& entry) { return entry.first == "HOME"; });
    result.emplace_back("HOME", setup_.home.string());
    result.emplace_back("KERNELSEEK_CACHE", (setup_.home.parent_path() / "cache").string());
  }
  result.emplace_back("KERNELSEEK_RUN", setup_.run_folder.string());
  result.emplace_back("KERNELSEEK_RUN_SOCKET", setup_.socket.string());
  result.emplace_back("KERNELSEEK_MESSAGE", message);
  return result;
}

}  // namespace ks::agents
